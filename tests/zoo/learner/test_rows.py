"""Rows are told apart by what they hold, not by how they are batched."""

from __future__ import annotations

import numpy as np

from bugs.zoo.learner.checking.rows import Rows, inputs_of


def rows(*batches: list[np.ndarray]) -> Rows:
    made = Rows()
    for batch in batches:
        made.add(batch)
    return made


def test_padding_makes_no_other_row() -> None:
    short = np.array([[101, 7, 102], [101, 8, 102]])
    padded = np.pad(short, ((0, 0), (0, 9))).astype(np.int32)
    assert rows([short]).digests == rows([padded]).digests
    assert rows([short], [padded]).count == 4


def test_repeated_rows_are_counted_and_not_new() -> None:
    made = rows(*[[np.array([[1.0, 2.0], [3.0, 4.0]])]] * 3)
    assert (len(made.digests), made.count) == (2, 6)


def test_the_precision_of_the_batch_makes_no_other_row() -> None:
    values = np.array([[1.5, 2.25]])
    assert rows([values]).digests == rows([values.astype(np.float32)]).digests


def test_rows_of_two_inputs_differ_if_either_does() -> None:
    one, other = np.array([[1], [1]]), np.array([[5], [6]])
    assert len(rows([one, other]).digests) == 2


def test_the_share_of_rows_in_others() -> None:
    train, test = rows([np.arange(8).reshape(8, 1) + 1]), rows([np.arange(4).reshape(4, 1) + 7])
    assert test.share_in(train.digests) == 0.5
    assert Rows().share_in(train.digests) == 0.0


def test_masks_and_labels_are_no_inputs() -> None:
    batch = {"labels": 1, "attention_mask": 2, "input_ids": 3, "nested": {"padding_mask": 4, "token_ids": (5, 6)}}
    assert inputs_of(batch) == [3, 5, 6]
    assert inputs_of((batch, 7)) == [3, 5, 6, 7]
