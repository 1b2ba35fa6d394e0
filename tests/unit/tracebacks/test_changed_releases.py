"""What is said of calls, files and fields that another release, system or format has otherwise."""

import pytest

from diagnostics.api.explain import explain

TRACEBACK = 'Traceback (most recent call last):\n  File "{file}", line 8, in main\n    {line}\n{said}'
CASES = [
    (
        "ob = self.env.reset(phase)",
        "TypeError: reset() takes 1 positional argument but 2 were given",
        "Since Gym 0.22 the wrappers",
    ),
    (
        "x = brew(a, b, c)",
        "TypeError: brew() takes 2 positional arguments but 3 were given",
        "brew() takes 2 arguments and is given 3",
    ),
    ("mode = args.mode", "AttributeError: Namespace object has not attribute 'mode'", "The settings have no mode"),
]


CASES += [
    (
        "open(join('data', name), 'w')",
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/a.txt'",
        "os.makedirs",
    ),
    (
        "open(join('data', name))",
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/a.txt'",
        "os.getcwd",
    ),
    ("import teapots.lid", "ModuleNotFoundError: No module named 'teapots.lid'", "its release has no lid"),
    ("import utils.lid", "ModuleNotFoundError: No module named 'utils.lid'", "utils is a folder of the project"),
    ("import teapot_hook", "ModuleNotFoundError: No module named 'teapot_hook'", "find . -name teapot_hook.py"),
    (
        "a = sigma ** 2",
        "TypeError: unsupported operand type(s) for ** or pow(): 'list' and 'int'",
        "is not defined for values of type list and int",
    ),
    (
        "n = int(net_options['max_epochs'])",
        "KeyError: 'max_epochs'",
        "If it is read from a file: that is of another revision",
    ),
    (
        "from teapots.config import Teapot",
        "ImportError: cannot import name 'Teapot'",
        "teapots.config has no Teapot. If it is another project's",
    ),
]


@pytest.mark.parametrize(("line", "said", "told"), CASES, ids=[case[1] for case in CASES])
def test_the_line_and_the_words_tell_which_side_to_change(line, said, told):
    text = TRACEBACK.format(file="/home/ada/train.py", line=line, said=said)
    logged = "\n".join(f"[rank0]: {part}" for part in text.split("\n"))
    assert [told in explain(pasted).crash.nature for pasted in (text, logged)] == [True, True]


def test_an_attribute_error_that_is_retyped_is_read():
    text = "Attribute error : tuple object has no attribute lower"
    assert "A tuple was passed where an object with lower was expected" in explain(text).crash.nature


def test_pythons_own_error_counts_beside_a_launchers_line():
    tail = "srun: error: node6: task 6: Exited with exit code 1"
    report = explain(f"TypeError: got an unexpected keyword argument 'depth'\n{tail}")
    assert report.findings == ()
    assert "takes no argument depth" in (report.crash.nature or "")


def test_a_plea_is_no_advice():
    text = "ValueError: the pot must boil at rank 3.\nPlease help me with this error i am not able to solve."
    assert "says what to do" not in (explain(text).crash.nature or "")


def test_a_dtype_of_tensorflow_is_cast_as_tensorflow_does():
    said = "ValueError: Tensor conversion requested dtype int32 for Tensor with dtype float32: 'Tensor(\"x:0\")'"
    (finding,) = explain(said).findings
    assert "tf.cast" in finding.fix
    assert ".float()" not in finding.fix
