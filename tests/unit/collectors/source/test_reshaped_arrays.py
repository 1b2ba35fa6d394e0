import ast

import numpy as np
import pytest

from diagnostics.collectors.source.compared_shapes import reshaped_arrays

SERIES = np.random.default_rng(0).normal(size=(40, 12, 3)).astype(np.float32)
CODE = "series = load()\nx = series.reshape(40, 3, 12)"


def reshaped(x, series=SERIES):
    return list(reshaped_arrays(ast.parse(CODE), "script.py", {"x": x, "series": series}))


@pytest.mark.parametrize(
    "x",
    [SERIES.reshape(40, 3, 12), SERIES.reshape(40, 3, 12).astype(float)],
    ids=["a view", "a copy"],
)
def test_finds_an_array_with_the_same_numbers_in_the_same_order(x):
    (one,) = reshaped(x)
    assert (one.names, one.shapes) == (("series", "x"), ((40, 12, 3), (40, 3, 12)))
    assert one.where.line == 2


@pytest.mark.parametrize(
    ("x", "series"),
    [
        (SERIES.transpose(0, 2, 1), SERIES),
        (SERIES.reshape(40, 6, 6), SERIES),
        (SERIES.reshape(40, 36), SERIES),
        (SERIES[:, :1].reshape(40, 3, 1), SERIES[:, :1]),
        (np.zeros((40, 3, 12)), np.zeros((40, 12, 3))),
        (SERIES[:20].reshape(20, 3, 12), SERIES),
        (SERIES.reshape(40, 3, 12) * 2, SERIES),
        ([[[1.0] * 12] * 3] * 40, SERIES),
    ],
    ids=["transposed", "other sizes", "flat", "an axis of 1", "zeros", "fewer rows", "other numbers", "a list"],
)
def test_is_silent(x, series):
    assert reshaped(x, series) == []
