"""How `compare` relates two arrays, and reads named axes."""

import numpy as np
import pytest

from diagnostics.collectors.checks.cases import Axes, is_particular, read_axes, varied_sizes
from diagnostics.collectors.checks.differences import difference_of, pattern_of, tolerance
from diagnostics.errors import InvalidInput
from diagnostics.facts.checks import Pattern

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5, 3))
SQUARE = RNG.normal(size=(4, 4))


def close(one, other):
    return one.shape == other.shape and np.allclose(one, other)


@pytest.mark.parametrize(
    ("got", "expected", "pattern"),
    [
        (SQUARE.T, SQUARE, Pattern("swapped axes", (1, 0))),
        (X.transpose(0, 2, 1), X, Pattern("swapped axes", (0, 2, 1))),
        (X.transpose(2, 0, 1), X, Pattern("swapped axes", (2, 0, 1))),
        (X[:, ::-1], X, Pattern("flipped", (1,))),
        (X.reshape(4, 3, 5), X.transpose(0, 2, 1), Pattern("refilled", (0, 2, 1))),
        (np.roll(X, 1, 1), X, Pattern("shifted", (1,), 1)),
        (np.roll(X, -1, 0), X, Pattern("shifted", (0,), -1)),
        (-X, X, Pattern("scaled", (), -1.0)),
        (X / 5, X, Pattern("scaled", (), 0.2)),
        (np.broadcast_to(SQUARE[0], (4, 4)), SQUARE[0], Pattern("broadcast", (0,))),
        (SQUARE[0][:, None] - SQUARE[1], SQUARE[0], Pattern("broadcast")),
        (np.broadcast_to(X.mean(1, keepdims=True), X.shape), X, Pattern("constant", (1,))),
        (X / X.sum(0), X / X.sum(1, keepdims=True), Pattern("other normalised axis", (1, 0))),
        (RNG.normal(size=X.shape), X, None),
        (X + 1, X, None),
        (np.zeros_like(X), X, Pattern("constant", (0,))),
    ],
)
def test_names_how_one_array_follows_from_the_other(got, expected, pattern):
    found = pattern_of(np.ascontiguousarray(got), expected, close)
    if found is not None and found.number is not None:
        found = Pattern(found.kind, found.axes, round(found.number, 9))
    assert found == pattern


def test_finds_the_first_difference_beyond_rounding():
    got = X.copy()
    got[2, 3, 1] += 1e-3
    got[3, 0, 0] += 1e-12
    allowed = tolerance(X, 2.0**-23, 60)
    found = difference_of("the result", got, X, allowed, 60, "float32")
    assert (found.index, found.count, found.total) == ((2, 3, 1), 1, 60)
    assert found.largest == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0], True),
        ([np.inf, 1.0], [-np.inf, 1.0], False),
        ([np.nan, 1.0], [2.0, 1.0], False),
        ([1, 2], [1, 3], False),
        ([True, False], [True, False], True),
    ],
)
def test_compares_values_that_are_not_finite_or_no_floats(got, expected, same):
    got, expected = np.array(got), np.array(expected)
    rounding = 2.0**-23 if got.dtype.kind == "f" else 0.0
    found = difference_of("the result", got, expected, tolerance(expected, rounding, 2), 2, "float32")
    assert (found is None) == same


def test_axes_of_one_name_have_one_size_and_others_differ():
    specs = [read_axes("batch time features", "x"), read_axes("features 3 < 7", "y")]
    cases = list(varied_sizes(specs))
    assert cases[0] == {"batch": 4, "time": 5, "features": 3}
    assert all(len(case) == 3 for case in cases)
    for name in ("batch", "time", "features"):
        assert any(case[name] == 1 for case in cases)
    assert all(size % 2 for size in cases[1].values())
    array = specs[1].array(cases[0], np.random.default_rng(0))
    assert array.shape == (3, 3)
    assert array.dtype == np.int64
    assert 0 <= array.min() <= array.max() < 7


@pytest.mark.parametrize("text", ["", " ", "a,b", "(a b) c", "a ...", "a < b", "0 a", "a < 0", "a-b"])
def test_refuses_what_names_no_axes(text):
    with pytest.raises(InvalidInput, match="names its axes as"):
        read_axes(text, "The input x")


def test_reads_axes_with_fixed_sizes():
    assert read_axes(" batch 3  height ", "x") == Axes(("batch", "3", "height"))
    assert list(varied_sizes([Axes(("2", "3"))])) == [{}]


@pytest.mark.parametrize(
    ("array", "particular"),
    [
        (np.sort(RNG.normal(size=9)), True),
        (np.exp(SQUARE) / np.exp(SQUARE).sum(1, keepdims=True), True),
        (SQUARE + SQUARE.T, True),
        (np.tril(SQUARE), True),
        (np.eye(3), True),
        (np.array([1.0, np.nan]), True),
        (SQUARE, False),
        (X, False),
    ],
)
def test_knows_values_that_random_ones_would_not_resemble(array, particular):
    assert is_particular(array) == particular
