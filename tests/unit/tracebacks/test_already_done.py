"""A fix that the text shows as done comes last."""

import pytest

from diagnostics.api.explain import explain

NCCL = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8\n"
ASSERT = "RuntimeError: CUDA error: device-side assert triggered\n"
CONSIDER = "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n"


@pytest.mark.parametrize(
    ("beside", "first"),
    [
        ("", "rerun with NCCL_DEBUG=INFO"),
        ("I ran it with NCCL_DEBUG=INFO.", "NCCL_SOCKET_IFNAME"),
        ("Please set NCCL_DEBUG=INFO.", "rerun with NCCL_DEBUG=INFO"),
    ],
    ids=["nothing", "done", "only advised"],
)
def test_setting_in_the_text_is_not_advised_first(beside, first):
    (finding,) = explain(f"{NCCL}{beside}\n").findings
    assert finding.fix.startswith(first)
    assert any("NCCL_DEBUG" in fix for fix in (finding.fix, *finding.alternatives))


def test_line_of_a_run_with_blocking_launches_is_the_failing_line():
    assert "CUDA_LAUNCH_BLOCKING is set" not in explain(ASSERT + CONSIDER).findings[0].message
    for said in ("CUDA_LAUNCH_BLOCKING=1 python train.py", 'os.environ["CUDA_LAUNCH_BLOCKING"] = "1"'):
        (finding,) = explain(f"{said}\n{ASSERT}{CONSIDER}").findings
        assert "CUDA_LAUNCH_BLOCKING is set" in finding.message
