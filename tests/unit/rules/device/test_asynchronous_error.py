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
LOST = "This process can no longer use the device: every later call fails too, until you restart it."
ASSERT = (
    "Meaning: an assertion in a kernel failed, nearly always about an index: a label beyond the model's last "
    "output, or a token id beyond the embedding's last row."
)
DOUBT = (
    "The device reported 'device-side assert triggered' while the host was at line 41, print(loss.item()). The "
    "traceback points at the synchronisation point, not the failing call: device work is queued, and the host "
    f"gets an error only at the next synchronisation. {ASSERT}"
)
ON_THE_CPU = (
    'run it on the CPU (device = "cpu" and one batch, or diagnose run --replay-on-cpu), which stops at the '
    "failing line and names the index"
)


class TestFromCrash:
    def test_doubts_the_line_and_lists_the_calls_that_remain(self):
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, CALLS, blocking=False))
        assert finding.severity == "error"
        assert finding.message == (
            f"{DOUBT} {LOST} The failing call is one of these lines:\n"
            "    37  logits = model(**batch).logits\n"
            "    38  loss = loss_fn(logits, labels)\n"
            "     9  loss.backward()"
        )
        assert (finding.fix, *finding.alternatives) == (
            "run it again as CUDA_LAUNCH_BLOCKING=1 python train.py: the traceback then ends at the line "
            "that failed",
            ON_THE_CPU,
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
            "print(loss.item()). CUDA_LAUNCH_BLOCKING is set, so every call waited for its kernel: this line is "
            f"the failing call. {ASSERT} {LOST}"
        )
        assert (finding.fix, *finding.alternatives) == (
            "check the inputs of this line: the range of labels and indices, and the shapes",
            ON_THE_CPU,
        )
        assert finding.evidence["line_is_right"]

    def test_repeats_what_the_kernel_printed(self):
        kernel, check = "nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes"
        finding = RULE.from_crash(
            TEXT, AsynchronousErrorCrash("assert", SAID, SURFACED, kernel=kernel, assertion=check)
        )
        assert finding.message == (
            f"{DOUBT} The log names the kernel, {kernel}, and its assertion: {check}. {LOST} The failing call is "
            "above that line."
        )

    def test_says_what_else_a_device_reports(self):
        access = RULE.from_crash(
            TEXT, AsynchronousErrorCrash("memory access", "an illegal memory access was encountered")
        )
        assert access.message == (
            "The device reported 'an illegal memory access was encountered' while the host was elsewhere. The "
            "traceback points at the synchronisation point, not the failing call: device work is queued, and the "
            "host gets an error only at the next synchronisation. Meaning: a kernel read or wrote memory outside "
            f"its tensors, usually with an index that was not checked. {LOST}"
        )
        launch = RULE.from_crash(TEXT, AsynchronousErrorCrash("launch", "unspecified launch failure"))
        assert "Meaning: a kernel was stopped before it finished, without any further message." in launch.message

    def test_points_at_the_memory_where_a_library_cannot_start(self):
        said = "CUBLAS_STATUS_NOT_INITIALIZED"
        finding = RULE.from_crash(TEXT, AsynchronousErrorCrash("library", said, SURFACED))
        assert finding.message == (
            "A GPU library could not be initialised or could not allocate memory "
            "(CUBLAS_STATUS_NOT_INITIALIZED). It allocates its own memory on first use, so usually the "
            "GPU is full, often because of other processes. Otherwise an earlier kernel failed, for "
            "instance on an index out of range, and this is the first call that gets the error: then "
            "this line is not the failing call."
        )
        assert (finding.fix, *finding.alternatives) == (
            "list the processes on the GPU: diagnose gpu, or nvidia-smi",
            (
                "if it has room: run it again as CUDA_LAUNCH_BLOCKING=1 python train.py: the traceback then "
                "ends at the line that failed"
            ),
        )

    def test_points_at_the_other_ranks_where_their_communication_fails(self):
        finding = RULE.from_crash(TEXT, AsynchronousErrorCrash("nccl", "NCCL error", SURFACED))
        assert finding.message == (
            "A collective failed (NCCL error). Collectives run asynchronously on the device, so the "
            "traceback points at the synchronisation point of this rank, and most ranks fail only "
            "because another one did. The cause is in the log of the rank that failed first: its own "
            "exception, a failed kernel, or a machine that cannot be reached."
        )
        assert (finding.fix, *finding.alternatives) == (
            "read the earliest traceback of all ranks",
            "set NCCL_DEBUG=INFO: then each rank logs what failed",
        )

    def test_says_that_a_simulation_is_one(self):
        finding = RULE.from_crash(
            LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, CALLS, blocking=False, simulated=True)
        )
        assert finding.message.startswith("A simulated device: CUDA's error messages, no GPU. The device reported")

    def test_does_not_list_a_trainer_as_its_own_cause(self):
        train = FrameFacts("train.py", 60, "<module>", "trainer.train()", yours=True)
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, train, (train,), blocking=False))
        assert finding.message.endswith(f"{LOST} The failing call is in line 60, or before it.")

    def test_names_the_files_where_there_are_several(self):
        calls = (CALLS[0], FrameFacts("losses.py", 7, "focal", "return nll.mean()", yours=True))
        finding = RULE.from_crash(LIVE, AsynchronousErrorCrash("assert", SAID, SURFACED, calls, blocking=False))
        assert finding.message.endswith(
            "is one of these lines:\n"
            "    train.py:37  logits = model(**batch).logits\n"
            "    losses.py:7  return nll.mean()"
        )

    @pytest.mark.parametrize("frames", [(), (FrameFacts("run.py", 3, "main", yours=True),)])
    def test_a_script_that_is_not_known_is_not_named_in_the_command(self, frames):
        crash = CrashFacts("RuntimeError", SAID, frames, live=False)
        finding = RULE.from_crash(crash, AsynchronousErrorCrash("assert", SAID))
        assert (finding.fix, *finding.alternatives) == (
            "run it again with CUDA_LAUNCH_BLOCKING=1 in the environment: the traceback then ends at the line "
            "that failed",
            ON_THE_CPU,
        )

    def test_a_kernel_of_a_library_may_be_older_than_the_gpu(self):
        for said, kind, named in [
            ("CUDNN_STATUS_EXECUTION_FAILED", "launch", True),
            ("CUBLAS_STATUS_EXECUTION_FAILED", "launch", True),
            ("unspecified launch failure", "launch", False),
        ]:
            finding = RULE.from_crash(TEXT, AsynchronousErrorCrash(kind, said))
            assert any("get_arch_list" in fix for fix in finding.alternatives) == named
