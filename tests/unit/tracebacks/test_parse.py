"""Tracebacks as they come out of terminals, logs, notebooks and launchers."""

import traceback

import pytest

from diagnostics.collectors.tracebacks.parse import failures

PLAIN = """\
Traceback (most recent call last):
  File "/home/ada/nli/train.py", line 31, in <module>
    main()
  File "/home/ada/nli/train.py", line 20, in main
    loss = criterion(logits, labels)
           ^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3526, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
IndexError: Target 2 is out of bounds.
"""


def parse(text):
    return [crash for failure in failures(text) for crash in failure.chain]


def assert_plain(crash):
    assert (crash.exception, crash.message) == ("IndexError", "Target 2 is out of bounds.")
    assert [frame.function for frame in crash.frames] == ["<module>", "main", "cross_entropy"]
    assert [frame.line for frame in crash.frames] == [31, 20, 3526]
    assert [frame.yours for frame in crash.frames] == [True, True, False]
    assert crash.frames[1].code == "loss = criterion(logits, labels)"
    assert crash.frames[2].file == "torch/nn/functional.py"
    assert str(crash.where) == "/home/ada/nli/train.py:20 in main"
    assert not crash.live


class TestParse:
    def test_a_traceback_as_python_prints_it(self):
        (crash,) = parse(PLAIN)
        assert_plain(crash)

    def test_of_a_notebook(self):
        text = (
            "---------------------------------------------------------------------------\n"
            "IndexError                                Traceback (most recent call last)\n"
            "Cell In[3], line 2\n"
            "      1 logits = model(inputs)\n"
            "----> 2 loss = criterion(logits, labels)\n"
            "\n"
            "File /env/lib/python3.11/site-packages/torch/nn/functional.py:3526, in cross_entropy(input, target)\n"
            "   3525     label_smoothing = 0.0\n"
            "-> 3526 return torch._C._nn.cross_entropy_loss(\n"
            "\n"
            "IndexError: Target 2 is out of bounds.\n"
        )
        (crash,) = parse(text)
        assert (crash.exception, crash.message) == ("IndexError", "Target 2 is out of bounds.")
        assert [(f.file, f.line, f.function) for f in crash.frames] == [
            ("In[3]", 2, "<module>"),
            ("torch/nn/functional.py", 3526, "cross_entropy"),
        ]
        assert crash.where.file == "In[3]"

    def test_the_last_line_alone(self):
        (crash,) = parse("IndexError: Target 2 is out of bounds.")
        assert (crash.exception, crash.message, crash.frames) == ("IndexError", "Target 2 is out of bounds.", ())
        assert crash.where is None

    def test_a_message_of_several_lines(self):
        message = (
            "CUDA error: device-side assert triggered\nCUDA kernel errors might be reported later.\n\nCompile."
        )
        (crash,) = parse(
            f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: {message}\n'
        )
        assert crash.message == message
        assert crash.first_line == "CUDA error: device-side assert triggered"

    def test_an_exception_without_a_message_and_one_with_a_module(self):
        assert [(c.exception, c.message) for c in parse("KeyboardInterrupt")] == [("KeyboardInterrupt", "")]
        (crash,) = parse("torch.OutOfMemoryError: CUDA out of memory.")
        assert (crash.exception, crash.message) == ("OutOfMemoryError", "CUDA out of memory.")

    def test_an_exception_that_is_not_called_an_error(self):
        (crash,) = parse(
            'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    next(rows)\nStopIteration\n'
        )
        assert crash.exception == "StopIteration"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "\n \n",
            "epoch 1: loss 0.5\nepoch 2: loss 0.4",
            "Error: see the log",
            "Traceback (most recent call last):",
        ],
    )
    def test_no_traceback(self, text):
        assert parse(text) == []


class TestFailures:
    def test_exceptions_that_came_of_each_other_are_one_failure(self):
        def fail():
            try:
                {}["pixels"]
            except KeyError as error:
                raise RuntimeError("no batch") from error

        try:
            try:
                fail()
            finally:
                int("three")
        except ValueError as error:
            text = "".join(traceback.format_exception(error))
        (failure,) = failures(f"first {PLAIN}\n" + text)[1:]
        assert [crash.exception for crash in failure.chain] == ["KeyError", "RuntimeError", "ValueError"]

    def test_separate_tracebacks_are_separate_failures(self):
        assert [(len(found.chain), found.line) for found in failures(f"{PLAIN}\n{PLAIN}")] == [(1, 1), (1, 11)]

    def test_what_a_worker_raised_is_found_inside_the_message(self):
        text = (
            "Traceback (most recent call last):\n"
            '  File "/home/ada/nli/train.py", line 31, in <module>\n'
            "    for batch in loader:\n"
            "KeyError: Caught KeyError in DataLoader worker process 0.\n"
            "Original Traceback (most recent call last):\n"
            '  File "/env/site-packages/torch/utils/data/_utils/worker.py", line 374, in _worker_loop\n'
            "    data = fetcher.fetch(index)\n"
            '  File "/home/ada/nli/data.py", line 12, in __getitem__\n'
            '    return row["pixels"]\n'
            "KeyError: 'pixels'\n"
        )
        ((crash,),) = (failure.chain for failure in failures(text))
        assert (crash.exception, crash.message) == ("KeyError", "'pixels'")
        assert str(crash.where) == "/home/ada/nli/data.py:12 in __getitem__"
        assert [frame.function for frame in crash.frames] == ["<module>", "_worker_loop", "__getitem__"]
