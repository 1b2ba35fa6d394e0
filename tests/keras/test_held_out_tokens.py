"""Which rows of a `fit` are compared by their tokens."""

import keras
import numpy as np
import pytest

from diagnostics.collectors.keras.fit_probes import FitCall
from diagnostics.collectors.keras.fit_probes.held_out_tokens import HeldOutTokens

IDS = np.arange(100).reshape(50, 2)
EMBEDDING = [keras.layers.Embedding(100, 2), keras.layers.Flatten(), keras.layers.Dense(1)]


def sides(layers=EMBEDDING, **given):
    model = keras.Sequential(layers)
    call = FitCall(model, given, epochs=[], graph=lambda: None, losses=None, shows_batch=False)
    return next(iter(HeldOutTokens(call).facts()), None)


@pytest.mark.parametrize(
    ("given", "are_cut"),
    [
        ({"x": IDS, "validation_split": 0.2}, True),
        ({"x": IDS[:40], "validation_data": (IDS[40:], None)}, True),
        ({"x": IDS[:40], "validation_data": (IDS[40:].copy(), None)}, False),
        ({"x": IDS[10:], "validation_data": (IDS[:10], None)}, False),
    ],
    ids=["validation_split", "slices of one array", "another array", "rows before the others"],
)
def test_both_sides_of_arrays(given, are_cut):
    found = sides(**given)
    assert (found.training_size, found.held_out_size, found.are_cut) == (40, 10, are_cut)
    assert found.inputs["0"][1].shape == (10, 2)


def test_inputs_are_told_apart():
    given = {"user": IDS[:, :1], "film": IDS[:, 1]}
    assert set(sides(x=given, validation_split=0.2).inputs) == {"user", "film"}


def test_nothing_without_ids_an_embedding_or_rows_held_out():
    assert sides(x=IDS / 2, validation_split=0.2) is None
    assert sides([keras.layers.Dense(1)], x=IDS, validation_split=0.2) is None
    assert sides(x=IDS) is None
