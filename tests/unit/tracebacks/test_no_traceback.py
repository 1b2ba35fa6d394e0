"""What is left of processes that could not raise."""

import pytest

import diagnostics
from diagnostics.collectors.tracebacks.no_traceback import last_words


class TestLastWords:
    def test_of_an_aborted_process_are_its_exceptions(self):
        words = last_words(
            "step 40\nterminate called after throwing an instance of 'c10::AcceleratorError'\n"
            "  what():  CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA`\n"
        )
        assert (words.exception, words.message) == (
            "AcceleratorError",
            "CUDA error: device-side assert triggered",
        )

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


class TestWordsElsewhere:
    @pytest.mark.parametrize("text", ["运行时报错{}请问怎么办", "报错:{}", "我的代码出现 {} 。"])
    def test_an_error_may_stand_in_a_sentence_of_another_script(self, text):
        error = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x10 and 12x3)"
        (finding,) = diagnostics.explain(text.format(error)).findings
        assert finding.rule == "shape-mismatch"

    @pytest.mark.parametrize(
        "text", ["Should I use 3 layers?", "I cannot train my model", "The loss must go down, I think"]
    )
    def test_a_question_is_no_message(self, text):
        with pytest.raises(diagnostics.InvalidInput):
            diagnostics.explain(text)

    def test_a_title_beside_a_launcher_s_report_names_the_cause(self):
        tail = (
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
            "Root Cause (first observed failure):\n[1]:\n  rank      : 1 (local_rank: 1)\n"
            "  exitcode  : 1 (pid: 42)\n  error_file: <N/A>\n"
        )
        (finding,) = diagnostics.explain(tail).findings
        assert finding.rule == "launcher-failure"
        title = "# RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n\n"
        (finding,) = diagnostics.explain(title + tail).findings
        assert finding.rule == "no-gradient"


def test_an_exception_without_a_colon_has_no_message():
    text = (
        'Traceback (most recent call last):\n  File "/home/ada/a.py", line 3, in f\n    assert a.left < a.right\n'
        "AssertionError\n\nwhen I train. What is wrong?\n"
    )
    report = diagnostics.explain(text)
    assert report.crash.message == ""
    assert "The condition does not hold: a.left < a.right." in report.crash.nature


def test_keras_2_lists_the_arguments_behind_the_sentence():
    text = (
        'Traceback (most recent call last):\n  File "/home/ada/a.py", line 3, in f\n    model(x)\n'
        "ValueError: Exception encountered when calling layer 'block' (type Block).\n\n"
        "Matrix size-incompatible: In[0]: [32,100], In[1]: [64,10] [Op:MatMul]\n\n"
        "Call arguments received by layer 'block' (type Block):\n"
        "  • inputs=tf.Tensor(shape=(9, 1), dtype=float32)\n"
    )
    report = diagnostics.explain(text)
    assert report.crash.first_line.startswith("Matrix size-incompatible")
    assert [finding.rule for finding in report.findings] == ["shape-mismatch"]
