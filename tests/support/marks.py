"""Which cases of a parametrized test `nox -s tests` leaves to `nox -s tests -- --all`."""

import pytest


def exhaustive(*cases):
    """Return the cases, marked exhaustive."""
    return [pytest.param(case, marks=pytest.mark.exhaustive) for case in cases]


def quick(cases, *few):
    """Return all cases, marked exhaustive but for the few, which stand for the others."""
    cases = list(cases)
    assert all(case in cases for case in few)
    return [case if case in few else exhaustive(case)[0] for case in cases]
