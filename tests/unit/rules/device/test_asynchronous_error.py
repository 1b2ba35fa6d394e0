import pytest

from diagnostics.facts.crash import AsynchronousErrorCrash, CrashFacts, FrameFacts
from diagnostics.rules.device.asynchronous_error import AsynchronousError

RULE = AsynchronousError()
SURFACED = FrameFacts("train.py", 41, "<module>", "print(loss.item())", yours=True)
CALLS = (
    FrameFacts("train.py", 37, "<module>", "logits = model(**batch).logits", yours=True),
    FrameFacts("train.py", 38, "<module>", "loss = loss_fn(logits, labels)", yours=True),
    FrameFacts("train.py", 9, "<module>", "loss.backward()", yours=True),
)
LIVE = CrashFacts("AcceleratorError", "CUDA error: device-side assert triggered", (SURFACED,), live=True)
TEXT = CrashFacts("RuntimeError", "CUDA error: device-side assert triggered", (SURFACED,), live=False)
SAID = "device-side assert triggered"


class TestFromCrash:
    def test_doubts_the_line_and_lists_the_calls_that_remain(self):
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, CALLS, blocking=False))
        assert finding.severity == "error"
        assert finding.evidence == {
            "kind": "assert",
            "said": SAID,
            "line_is_right": False,
            "candidates": [
                "train.py:37 logits = model(**batch).logits",
                "train.py:38 loss = loss_fn(logits, labels)",
                "train.py:9 loss.backward()",
            ],
            "kernel": None,
            "assertion": None,
        }
        assert str(finding.where) == "train.py:41"

    def test_trusts_the_line_where_launches_block(self):
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, CALLS, blocking=True))
        assert finding.evidence["line_is_right"]

    def test_repeats_what_the_kernel_printed(self):
        kernel, check = "nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes"
        assert (
            RULE.from_crash(
                TEXT, AsynchronousErrorCrash("assert", SAID, SURFACED, kernel=kernel, assertion=check)
            ).severity
            == "error"
        )

    def test_says_what_else_a_device_reports(self):
        assert (
            RULE.from_crash(
                TEXT, AsynchronousErrorCrash("memory access", "an illegal memory access was encountered")
            ).severity
            == "error"
        )
        assert (
            RULE.from_crash(TEXT, AsynchronousErrorCrash("launch", "unspecified launch failure")).severity
            == "error"
        )

    def test_says_that_a_simulation_is_one(self):
        assert (
            RULE.from_crash(
                LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, CALLS, blocking=False, simulated=True)
            ).severity
            == "error"
        )

    def test_does_not_list_a_trainer_as_its_own_cause(self):
        train = FrameFacts("train.py", 60, "<module>", "trainer.train()", yours=True)
        assert (
            RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, train, (train,), blocking=False)).severity
            == "error"
        )

    def test_names_the_files_where_there_are_several(self):
        calls = (CALLS[0], FrameFacts("losses.py", 7, "focal", "return nll.mean()", yours=True))
        assert (
            RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, calls, blocking=False)).severity
            == "error"
        )

    @pytest.mark.parametrize("frames", [(), (FrameFacts("run.py", 3, "main", yours=True),)])
    def test_a_script_that_is_not_known_is_not_named_in_the_command(self, frames):
        crash = CrashFacts("RuntimeError", SAID, frames, live=False)
        assert RULE.from_crash(crash, AsynchronousErrorCrash("assert", SAID)).severity == "error"

    def test_a_kernel_of_a_library_may_be_older_than_the_gpu(self):
        for said in (
            "CUDNN_STATUS_EXECUTION_FAILED",
            "CUBLAS_STATUS_EXECUTION_FAILED",
            "unspecified launch failure",
        ):
            assert RULE.from_crash(TEXT, AsynchronousErrorCrash("launch", said)).severity == "error"
