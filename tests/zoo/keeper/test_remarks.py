"""TensorFlow's remarks about the machine are left out of a run; all else comes through, and at once."""

from __future__ import annotations

import pytest

from bugs.zoo.keeper.remarks import WithoutRemarks

REMARKS = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"I0000 00:00:1796070680.948239   25251 port.cc:153] oneDNN custom operations are on.\n"
    b"I0000 00:00:1796070681.455047   25251 cpu_feature_guard.cc:227] This TensorFlow binary is optimized.\n"
    b"To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the flags.\n"
    b"I0000 00:00:1796070789.302345   26015 device_compiler.h:208] Compiled cluster using XLA!\n"
    b"E0000 00:00:1796070708.740965   25251 cuda_platform.cc:52] failed call to cuInit: UNKNOWN ERROR (303)\n"
)
OWN = (
    b"Epoch 1\n\rMap:  50%\rMap: 100%\nI see a port.cc:153] here\n"
    b"W0000 00:00:1796070708.740965   25251 bfc_allocator.cc:310] Allocator ran out of memory\n"
    b"Traceback (most recent call last):\r\nTypeError: not a remark\nIndexError: the last line"
)


@pytest.mark.parametrize("size", [1, 2, 7, 50, 10_000])
def test_only_remarks_are_left_out_however_the_output_is_cut(size: int) -> None:
    passed: list[bytes] = []
    sink, output = WithoutRemarks(passed.append), REMARKS + OWN.replace(b"Epoch 1\n", b"Epoch 1\n" + REMARKS)
    for start in range(0, len(output), size):
        sink(output[start : start + size])
    sink.close()
    assert b"".join(passed) == OWN


def test_a_line_that_cannot_be_a_remark_is_not_held_back() -> None:
    passed: list[bytes] = []
    sink = WithoutRemarks(passed.append)
    sink(b"\rMap:  50%")
    sink(b"|#####")
    assert b"".join(passed) == b"\rMap:  50%|#####"


def test_a_remark_without_an_end_is_left_out_at_the_close() -> None:
    passed: list[bytes] = []
    sink = WithoutRemarks(passed.append)
    sink(REMARKS[:-1])
    sink.close()
    assert passed == []
