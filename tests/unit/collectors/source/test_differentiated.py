"""The line that computes what a line of a script differentiates."""

import itertools
import linecache
import sys
import textwrap

import pytest

from diagnostics.collectors.source.differentiated import differentiated_at

FILES = (f"loss_{number}.py" for number in itertools.count())


class Value:
    """Stands for a loss, a scaler and an accelerator; at a backward pass it asks where the loss was computed."""

    def backward(self, *_):
        found.append(differentiated_at(sys._getframe(1)))

    def scale(self, loss):
        return loss

    def __add__(self, _):
        return self

    __truediv__ = __radd__ = __add__


found = []


def computed(text):
    """Run a script with one backward pass; return the expression that is named, and None if there is none."""
    code, file = textwrap.dedent(text).lstrip("\n"), next(FILES)
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    found.clear()
    exec(compile(code, file, "exec"), {"Value": Value, "criterion": lambda *_: Value(), "scaler": Value()})
    (where,) = found
    if where is None:
        return None
    assert (where.file, where.line) == (file, where.end_line)
    return where.line, code.splitlines()[where.line - 1][where.column - 1 : where.end_column - 1]


@pytest.mark.parametrize(
    "backward",
    ["loss.backward()", "scaler.scale(loss).backward()", "scaler.backward(loss)", "(loss / 4).backward(\n    )"],
)
def test_whoever_runs_the_backward_pass(backward):
    lines = [
        "scaler = Value()",
        "for é in 'x':",
        "    é = 'é'; loss = criterion(é)",
        *textwrap.indent(backward, "    ").splitlines(),
    ]
    assert computed("\n".join(lines)) == (3, "criterion(é)")


def test_within_a_function_and_of_several_results():
    assert computed(
        """
        def train(x):
            with open(__import__("os").devnull):
                loss, outputs = criterion(x), x
            loss = loss + 0.1
            loss.backward()
        train(1)
        """
    ) == (3, "criterion(x), x")


@pytest.mark.parametrize(
    "script",
    [
        "criterion(1).backward()",
        "loss = criterion(1)\nfor _ in 'x':\n    loss.backward()",
        "loss = criterion(1)\ndef step(loss):\n    loss.backward()\nstep(loss)",
        "if 1:\n    loss = criterion(1)\nelse:\n    loss = criterion(2)\nloss.backward()",
        "def step():\n    loss = criterion(2)\n    return loss\nstep().backward()",
    ],
)
def test_nothing_where_the_source_does_not_say_it(script):
    assert computed(script) is None


def test_nothing_of_a_file_that_was_changed_since():
    code = "loss = Value()\nloss.backward()\n"
    linecache.cache["changed.py"] = (len(code), None, ["loss = (\n"], "changed.py")
    found.clear()
    exec(compile(code, "changed.py", "exec"), {"Value": Value})
    assert found == [None]
