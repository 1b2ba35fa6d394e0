"""Which tokens of both sides of a split are compared."""

import numpy as np

from diagnostics.collectors.shared.split_overlap import MAX_ROWS, tokens_of_arrays, tokens_of_rows
from diagnostics.facts.data import NO_TOKEN

TEXTS = [([3, 4, 5], 0), ([6, 7], 1), ([8, 9, 10, 11], 0)]


def test_rows_of_texts_are_filled_up():
    sides = tokens_of_rows(TEXTS, TEXTS[:2], 1.0)
    training, held = sides.inputs["0"]
    assert sorted(map(tuple, training.tolist())) == [
        (3, 4, 5, NO_TOKEN),
        (6, 7, NO_TOKEN, NO_TOKEN),
        (8, 9, 10, 11),
    ]
    assert held.shape == (2, 3)
    assert (sides.training_size, sides.held_out_size, sides.are_cut) == (3, 2, False)


def test_labels_and_numbers_are_left_out():
    rows = [{"input_ids": [1, 2], "age": 0.5, "labels": 1}] * 4
    assert set(tokens_of_rows(rows, rows, 1.0).inputs) == {"input_ids"}
    assert tokens_of_rows([(0.5, 1)] * 4, [(0.5, 1)] * 4, 1.0) is None


def test_needs_rows_by_index():
    assert tokens_of_rows(iter(TEXTS), TEXTS, 1.0) is None
    assert tokens_of_rows(TEXTS, [], 1.0) is None


def test_arrays_are_bounded():
    ids = np.arange(3 * MAX_ROWS)
    sides = tokens_of_arrays({"user": (ids, ids[:9])}, are_cut=True)
    training, held = sides.inputs["user"]
    assert (training.shape, held.shape, sides.training_size) == ((MAX_ROWS, 1), (9, 1), 3 * MAX_ROWS)
    assert tokens_of_arrays({"0": (ids / 2, ids / 2)}, are_cut=True) is None
