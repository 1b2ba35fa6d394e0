"""An exception that this library raised is a fault of its own, and no finding about the user's program."""

from pathlib import Path

import pytest
import torch

import diagnostics
from diagnostics.api.walk import Walk
from diagnostics.collectors.shared.pipeline import Pipeline, users_code

OURS = str(Path(diagnostics.__file__).parent / "collectors" / "made_for_a_test.py")
YOURS = "train.py"
MULTIPLIES = "def multiply(a, b):\n    return a @ b"
PASSES_ON = "def passes_on(*given):\n    return work(*given)"


def function(source, file, **names):
    """Define a function as if it were written in `file`."""
    exec(compile(source, file, "exec"), names)
    return next(value for name, value in names.items() if callable(value) and name in source.split("(")[0])


def failure(function):
    with pytest.raises(RuntimeError) as raised:
        function(torch.ones(2, 3), torch.ones(4, 5))
    return raised.value


def test_explain_blames_itself_for_an_error_of_its_own():
    report = diagnostics.explain(failure(function(MULTIPLIES, OURS)))
    assert report.findings == ()
    assert len(report.faults) == 1
    assert "mat1 and mat2 shapes cannot be multiplied" in report.faults[0]


def test_explain_names_the_same_error_of_the_user():
    report = diagnostics.explain(failure(function(MULTIPLIES, YOURS)))
    assert [finding.rule for finding in report.findings] == ["shape-mismatch"]
    assert report.faults == ()


def test_explain_names_an_error_that_a_wrapper_passed_on():
    report = diagnostics.explain(failure(function(PASSES_ON, OURS, work=torch.matmul)))
    assert [finding.rule for finding in report.findings] == ["shape-mismatch"]
    assert report.faults == ()


class Failing(Pipeline):
    """A pipeline whose forward pass runs what it is given."""

    name = "a pipeline"
    not_offered = dict.fromkeys(("evaluation", "backward", "overfit", "reproduction"), "not offered")

    def __init__(self, multiply):
        self._multiply = multiply

    def untouched(self):
        return torch.no_grad()

    def dataset(self):
        yield from ()

    def batch(self):
        yield from ()

    def optimizer_step(self):
        yield from ()

    def forward(self):
        with users_code():
            self._multiply(torch.ones(2, 3), torch.ones(4, 5))
        yield from ()


@pytest.mark.parametrize(("file", "found"), [(OURS, []), (YOURS, ["shape-mismatch"])])
def test_examination_blames_itself_for_an_error_of_its_own(file, found):
    report = Walk(Failing(function(MULTIPLIES, file))).report()
    assert [finding.rule for finding in report.findings] == found
    assert len(report.faults) == (not found)
