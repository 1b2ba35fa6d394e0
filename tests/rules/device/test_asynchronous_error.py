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
LOST = "The device is lost to this process: every later call fails likewise, until it is started anew."
ASSERT = (
    "What it means: a kernel's own check failed there, nearly always of an index: a label past the model's last "
    "output, or a token id past the embedding's last row."
)
DOUBT = (
    "The device reported 'device-side assert triggered' while the host was at line 41, print(loss.item()), but "
    "that is only where the host heard of it. Work for a device is queued and the host goes on; it learns of a "
    f"failure where it next waits. {ASSERT}"
)
ON_THE_CPU = (
    'or run it on the CPU (device = "cpu" and one batch, or diagnose run --replay-on-cpu), which stops at the '
    "failing line and names the index"
)


class TestFromCrash:
    def test_doubts_the_line_and_lists_the_calls_that_remain(self):
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, CALLS, blocking=False))
        assert finding.severity == "error"
        assert finding.message == (
            f"{DOUBT} {LOST} What failed was launched by one of these lines:\n"
            "    37  logits = model(**batch).logits\n"
            "    38  loss = loss_fn(logits, labels)\n"
            "     9  loss.backward()"
        )
        assert finding.fix == (
            "run it again as CUDA_LAUNCH_BLOCKING=1 python train.py: the traceback then ends at the line that "
            f"failed, {ON_THE_CPU}"
        )
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
        assert finding.message == (
            "The device reported 'device-side assert triggered' while the host was at line 41, "
            "print(loss.item()). CUDA_LAUNCH_BLOCKING is set, so every call waited for its kernel: the line is "
            f"right, and this call is the one that failed. {ASSERT} {LOST}"
        )
        assert finding.fix == (
            f"look at what this line is given: the range of labels and indices, and the shapes; {ON_THE_CPU}"
        )
        assert finding.evidence["line_is_right"]

    def test_repeats_what_the_kernel_printed(self):
        kernel, check = "nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes"
        finding = RULE.from_crash(
            TEXT, AsynchronousErrorCrash("assert", SAID, SURFACED, kernel=kernel, assertion=check)
        )
        assert finding.message == (
            f"{DOUBT} The log names the kernel, {kernel}, and its check: {check}. {LOST} What failed was launched "
            "before, by a line above that one."
        )

    def test_says_what_else_a_device_reports(self):
        access = RULE.from_crash(
            TEXT, AsynchronousErrorCrash("memory access", "an illegal memory access was encountered")
        )
        assert access.message == (
            "The device reported 'an illegal memory access was encountered' while the host was elsewhere, but "
            "that is only where the host heard of it. Work for a device is queued and the host goes on; it learns "
            "of a failure where it next waits. What it means: a kernel read or wrote memory that is not its own, "
            f"usually by an index out of range that nothing checks. {LOST}"
        )
        launch = RULE.from_crash(TEXT, AsynchronousErrorCrash("launch", "unspecified launch failure"))
        assert (
            "What it means: a kernel was ended before it was done, and said no more than that." in launch.message
        )

    def test_points_at_the_memory_where_a_library_cannot_start(self):
        said = "CUBLAS_STATUS_NOT_INITIALIZED"
        finding = RULE.from_crash(TEXT, AsynchronousErrorCrash("library", said, SURFACED))
        assert finding.message == (
            "A library of the device could not be started or given memory (CUBLAS_STATUS_NOT_INITIALIZED). It "
            "asks for memory of its own on first use, so this mostly means that the card is full, and often of "
            "other processes' memory. Otherwise a kernel failed before, by an index out of range for instance, "
            "and this is the first call that hears of it: then the line is not the one to look at."
        )
        assert finding.fix == (
            "see who holds the card: diagnose gpu, or nvidia-smi. If it has room: run it again as "
            "CUDA_LAUNCH_BLOCKING=1 python train.py: the traceback then ends at the line that failed"
        )

    def test_points_at_the_other_ranks_where_their_communication_fails(self):
        finding = RULE.from_crash(TEXT, AsynchronousErrorCrash("nccl", "NCCL error", SURFACED))
        assert finding.message == (
            "Communication between the ranks failed (NCCL error). Collectives run on the device and are waited "
            "for later, so the line is where this rank heard of it; and most ranks fail only because another one "
            "did. The cause stands in the log of the rank that failed first: an exception of its own, a kernel "
            "that failed, or a machine that cannot be reached."
        )
        assert finding.fix == (
            "read the earliest traceback of all ranks; NCCL_DEBUG=INFO makes each say what it could not do"
        )

    def test_says_that_a_simulation_is_one(self):
        finding = RULE.from_crash(
            LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, CALLS, blocking=False, simulated=True)
        )
        assert finding.message.startswith("A simulated device: CUDA's words, no card. The device reported")

    def test_does_not_list_a_trainer_as_its_own_cause(self):
        train = FrameFacts("train.py", 60, "<module>", "trainer.train()", yours=True)
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, train, (train,), blocking=False))
        assert finding.message.endswith(f"{LOST} What failed was launched somewhere within line 60, or before it.")

    def test_names_the_files_where_there_are_several(self):
        calls = (CALLS[0], FrameFacts("losses.py", 7, "focal", "return nll.mean()", yours=True))
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, calls, blocking=False))
        assert finding.message.endswith(
            "by one of these lines:\n"
            "    train.py:37  logits = model(**batch).logits\n"
            "    losses.py:7  return nll.mean()"
        )

    @pytest.mark.parametrize("frames", [(), (FrameFacts("run.py", 3, "main", yours=True),)])
    def test_a_script_that_is_not_known_is_not_named_in_the_command(self, frames):
        crash = CrashFacts("RuntimeError", SAID, frames, live=False)
        assert RULE.from_crash(crash, AsynchronousErrorCrash("assert", SAID)).fix == (
            "run it again with CUDA_LAUNCH_BLOCKING=1 in the environment: the traceback then ends at the line "
            f"that failed, {ON_THE_CPU}"
        )
