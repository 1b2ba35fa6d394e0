"""Images with their channels first, before a convolution that reads them last."""

import numpy as np
import pytest

from diagnostics.collectors.keras.examine.image_axes import swapped_channels
from tests.keras.programs import keras, layers

ROWS = np.random.default_rng(0).normal(size=(8, 3, 12, 1))
FIRST = (ROWS.cumsum(2) + ROWS.cumsum(2).transpose(0, 1, 3, 2)).astype("float32")  # (8, 3, 12, 12), smooth
LAST = FIRST.transpose(0, 2, 3, 1)


def found(x, *parts):
    model = keras.Sequential([keras.Input(x.shape[1:]), *parts, layers.Conv2D(4, 3, padding="same")])
    return [seen.shape for seen in swapped_channels(model, x)]


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
