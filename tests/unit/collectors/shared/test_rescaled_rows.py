"""Rows of folds are recognised where a scaler is fitted again for each."""

import numpy as np
import pytest

from diagnostics.collectors.shared.repeated_rows import row_keys
from diagnostics.collectors.shared.rescaled_rows import RescaledRows

RNG = np.random.default_rng(0)
TABLE = (RNG.normal(size=(600, 12)) * np.exp(2 * RNG.normal(size=12)) + 5).astype(np.float32)
TABLE[:, 3] = RNG.integers(0, 2, 600)


def scaled(rows, by):
    """Return rows as a scaler turns them that was fitted on others."""
    return [((rows - by.mean(axis=0)) / by.std(axis=0)).astype(np.float32)]


@pytest.mark.parametrize("folds", [3, 5, 10])
def test_rows_of_folds_are_recognised(folds):
    places = RNG.permutation(600)
    parts = [np.sort(part) for part in np.array_split(places, folds)]
    sides = [(np.sort(np.setdiff1d(places, part)), part) for part in parts[:3]]
    first = scaled(TABLE[sides[0][0]], TABLE[sides[0][0]])
    rows, earlier = RescaledRows(first, row_keys(first)), row_keys(first)
    for train, test in sides[1:]:
        given, held_out = (scaled(TABLE[side], TABLE[train]) for side in (train, test))
        assert not np.isin(row_keys(held_out), earlier).any()
        latest = rows.fitted(given, row_keys(given))
        known = rows.known(held_out, row_keys(held_out))
        assert np.isin(known, earlier).all()
        assert not np.isin(known, latest).any()
        earlier = np.union1d(earlier, latest)


@pytest.mark.parametrize(
    "others",
    [
        RNG.normal(size=(600, 12)).astype(np.float32),
        TABLE + RNG.normal(size=(600, 12)).astype(np.float32) * TABLE.std(axis=0) / 10,
        TABLE[:, :6],
        np.tile(TABLE, (8, 1)),
    ],
    ids=["other rows", "rows with noise", "fewer columns", "too many"],
)
def test_others_keep_their_numbers(others):
    first = scaled(TABLE, TABLE)
    rows, keys = RescaledRows(first, row_keys(first)), row_keys([others])
    assert np.array_equal(rows.fitted([others], keys), keys)
    assert np.array_equal(rows.known([others], keys), keys)


def test_rows_in_the_same_scale_are_known_by_their_numbers():
    first, second = TABLE[:400], TABLE[100:500]
    rows = RescaledRows([first], row_keys([first]))
    assert np.array_equal(rows.fitted([second], row_keys([second])), row_keys([second]))
