"""What VS Code shows where a program stopped: the exception first, and the innermost frame before the others."""

from diagnostics.api.explain import explain
from diagnostics.collectors.tracebacks.parse import failures

STOPPED = """\
Exception has occurred: {name}       (note: full exception trace is shown but execution is paused at: _run_module)
{message}
  File "/home/ada/project/net.py", line 12, in forward
    return self.head(x)
  File "/home/ada/project/train.py", line 30, in <module>
    model(x)
"""


def stopped(name, message):
    return STOPPED.format(name=name, message=message)


def test_the_exception_and_its_frames_are_read():
    (failure,) = failures(stopped("KeyError", "'model_state_dict'"))
    assert (failure.last.exception, failure.last.message) == ("KeyError", "'model_state_dict'")
    assert [(frame.function, frame.line) for frame in failure.last.frames] == [("<module>", 30), ("forward", 12)]


def test_frames_in_pythons_order_stay_so():
    head, message, inner, code, outer, call, _ = stopped("KeyError", "'x'").split("\n")
    (failure,) = failures("\n".join([head, message, outer, call, inner, code]))
    assert [frame.function for frame in failure.last.frames] == ["<module>", "forward"]


def test_a_message_of_several_lines_stays_whole():
    (failure,) = failures(stopped("RuntimeError", "first line\nsecond line"))
    assert failure.last.message == "first line\nsecond line"


def test_the_line_of_the_failure_is_named():
    (finding,) = explain(
        stopped("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (64x9216 and 4096x120)")
    ).findings
    assert finding.where is not None
    assert finding.where.line == 12


def test_without_frames_the_message_counts():
    (finding,) = explain("Exception has occurred: IndexError\nTarget 10 is out of bounds.").findings
    assert finding.rule == "labels-out-of-range"
