"""What is left of processes that could not raise."""

import pytest

import diagnostics
from diagnostics.collectors.tracebacks.no_traceback import last_words


class TestLastWords:
    @pytest.mark.parametrize("text", ["Killed", "epoch 1: loss 0.69\nKilled\n", "zsh: killed     python train.py"])
    def test_of_a_killed_process_are_its_shells(self, text):
        assert last_words(text).exception == "SIGKILL"

    def test_of_an_aborted_process_are_its_exceptions(self):
        words = last_words(
            "step 40\nterminate called after throwing an instance of 'c10::AcceleratorError'\n"
            "  what():  CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA`\n"
        )
        assert (words.exception, words.message) == (
            "AcceleratorError",
            "CUDA error: device-side assert triggered",
        )

    @pytest.mark.parametrize("text", ["", "epoch 1: loss 0.69", "nothing was Killed off here, only saved"])
    def test_are_not_found_in_any_log(self, text):
        assert last_words(text) is None

    @pytest.mark.parametrize(
        "said",
        [
            "brevity() takes 1 positional argument but 2 were given",
            "brevity() missing 1 required positional argument: 'texts'",
        ],
    )
    def test_of_a_refused_call_need_no_name_of_its_exception(self, said):
        crash = diagnostics.explain(f"Why do I get this: {said}?").crash
        assert (crash.exception, crash.message) == ("TypeError", said)

    @pytest.mark.parametrize(
        ("thrown", "said", "rule"),
        [
            ("c10::Error", "CUDA error: device-side assert triggered", "asynchronous-error"),
            ("c10::DistBackendError", "[Rank 0] Process group watchdog thread: NCCL error", "asynchronous-error"),
            ("std::bad_alloc", "std::bad_alloc", "out-of-memory"),
        ],
    )
    def test_are_explained(self, thrown, said, rule):
        text = f"terminate called after throwing an instance of '{thrown}'\n  what():  {said}\nAborted"
        (finding,) = diagnostics.explain(text).findings
        assert finding.rule == rule
