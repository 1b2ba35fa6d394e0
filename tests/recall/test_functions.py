"""Each function is silent on what is healthy, and names what is broken: the table of `nox -s recall`."""

from __future__ import annotations

import pytest

from tests.recall.functions.table import FUNCTIONS

SLOW = ("overfit", "LoaderChecks", "watch(fixed_batch=…)")  # in CI by `nox -s recall`
CASES = [
    pytest.param(case, id=f"{function}-{case.name}", marks=[pytest.mark.exhaustive] if function in SLOW else [])
    for function, cases in FUNCTIONS.items()
    for case in cases
]


@pytest.mark.parametrize("case", CASES)
def test_a_case_ends_as_meant(case) -> None:
    assert case.failure() == ""


def test_each_function_is_tried_on_five_healthy_and_five_broken() -> None:
    for function, cases in FUNCTIONS.items():
        assert sum(case.is_healthy for case in cases) >= 5, function
        assert sum(not case.is_healthy for case in cases) >= 5, function
        assert len({case.name for case in cases}) == len(cases), function
