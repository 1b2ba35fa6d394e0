"""Sequences of which a model uses the first step alone; nothing of the model changes."""

import numpy as np
import pytest

from diagnostics.collectors.keras.dependence.measure import measure
from diagnostics.collectors.keras.dependence.subject import KerasSubject, keep_batch
from tests.keras.programs import keras, layers

ROWS = np.random.default_rng(0).normal(size=(32, 9, 6)).astype("float32")


def attention(x, causal=True):
    return layers.MultiHeadAttention(num_heads=2, key_dim=4)(x, x, use_causal_mask=causal)


def both_ways(x):
    return attention(x, causal=False)


def recurrent(x):
    return layers.GRU(8, return_sequences=True)(x)


def bidirectional(x):
    return layers.Bidirectional(layers.GRU(8, return_sequences=True))(x)


def first_step_of(read, place):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((9, 6))
    model = keras.Model(inputs, layers.Dense(2)(read(inputs)[:, place]))
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_weights()
    facts = measure(KerasSubject(model, keep_batch(ROWS, np.arange(32) % 2, None)))
    assert all(map(np.array_equal, before, model.get_weights()))
    return facts.first_step_of


@pytest.mark.parametrize("read", [attention, recurrent])
def test_only_the_first_step_is_seen(read):
    assert first_step_of(read, 0) == 9
    assert first_step_of(read, -1) is None


@pytest.mark.parametrize("read", [both_ways, bidirectional])
def test_nothing_where_the_first_step_has_seen_the_later_ones(read):
    assert first_step_of(read, 0) is None
