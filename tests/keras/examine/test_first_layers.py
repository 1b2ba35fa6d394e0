"""Images before a convolution that reads other axes, or a rescaling that expects bytes."""

import numpy as np
import pytest

from diagnostics.collectors.keras.examine.first_layers import first_layers
from diagnostics.facts.inputs import AdaptedElsewhere, ScaledTwice, SwappedChannels
from tests.keras.programs import keras, layers

ROWS = np.random.default_rng(0).normal(size=(8, 3, 12, 1))
FIRST = (ROWS.cumsum(2) + ROWS.cumsum(2).transpose(0, 1, 3, 2)).astype("float32")  # (8, 3, 12, 12), smooth
LAST = FIRST.transpose(0, 2, 3, 1)


def found(x, *parts):
    model = keras.Sequential([keras.Input(x.shape[1:]), *parts, layers.Conv2D(4, 3, padding="same")])
    return [seen.shape for seen in first_layers(model, x) if isinstance(seen, SwappedChannels)]


@pytest.mark.parametrize("parts", [(), (layers.Rescaling(0.5),)])
def test_channels_first_are_found(parts):
    assert found(FIRST, *parts) == [(8, 3, 12, 12)]


def test_one_channel_is_found():
    assert found(FIRST[:, :1]) == [(8, 1, 12, 12)]


def test_channels_last_are_not():
    assert found(LAST) == []


def test_axes_that_the_model_moves_are_not():
    assert found(FIRST, layers.Permute((2, 3, 1))) == []


def test_numbers_without_neighbours_are_not():
    assert found(np.random.default_rng(0).normal(size=(8, 3, 12, 12)).astype("float32")) == []


def test_a_side_of_another_length_is_not():
    assert found(FIRST[:, :, :10]) == []


def scaled(x, *parts):
    model = keras.Sequential([keras.Input(x.shape[1:]), *parts, layers.Conv2D(4, 3)])
    return [seen for seen in first_layers(model, x) if isinstance(seen, ScaledTwice)]


UNIT = np.linspace(0, 1, 8 * 12 * 12 * 3, dtype="float32").reshape(8, 12, 12, 3)


@pytest.mark.parametrize("augmented", [(), (layers.RandomFlip(),)])
def test_a_second_rescaling_is_found(augmented):
    (seen,) = scaled(UNIT, *augmented, layers.Rescaling(1 / 255, name="rescaling"))
    assert seen == ScaledTwice("rescaling", 1 / 255, 0.0, 1.0)


def test_one_in_a_base_that_brings_its_own_is_found():
    base = keras.Sequential([keras.Input((12, 12, 3)), layers.Rescaling(1 / 127.5, -1), layers.Conv2D(4, 3)])
    assert len(scaled(2 * UNIT - 1, base)) == 1


@pytest.mark.parametrize(
    ("x", "parts"),
    [
        (255 * UNIT, (layers.Rescaling(1 / 255),)),
        (UNIT, (layers.Rescaling(2.0, offset=-1),)),
        (UNIT, (layers.Rescaling(255.0), layers.Rescaling(1 / 255))),
        (UNIT, ()),
        (np.zeros_like(UNIT), (layers.Rescaling(1 / 255),)),
    ],
    ids=["of bytes", "to -1 to 1", "taken back", "none", "nothing to see"],
)
def test_a_single_rescaling_is_not(x, parts):
    assert scaled(x, *parts) == []


RAW = np.random.default_rng(0).integers(60, 220, (32, 12, 12, 1)).astype("float32")


def adapted(given, to, *parts):
    norm = layers.Normalization(name="norm")
    norm.adapt(to)
    model = keras.Sequential([keras.Input(given.shape[1:]), *parts, norm, layers.Dense(4)])
    return [seen for seen in first_layers(model, given) if isinstance(seen, AdaptedElsewhere)]


def test_a_normalization_adapted_to_bytes_is_found_before_pixels_from_0_to_1():
    (seen,) = adapted(RAW / 255, RAW)
    assert seen.layer == "norm"
    assert seen.spread < 0.01
    assert len(adapted(RAW[:, 0, :, 0], RAW[:, 0, :, 0] / 255)) == 1  # and the other way round


@pytest.mark.parametrize(
    ("given", "to"),
    [
        (RAW[:16], RAW),
        (RAW / 8, RAW),
        (np.full((32, 4), 7.0), RAW[:, 0, :4, 0]),
        (np.linspace(0, 0.1, 32).reshape(32, 1), np.linspace(0, 100, 32_000).reshape(-1, 1)),
    ],
    ids=["part of the rows", "another exposure", "constant", "neighbours in a series"],
)
def test_one_adapted_to_such_numbers_is_not(given, to):
    assert adapted(given.astype("float32"), to.astype("float32")) == []
