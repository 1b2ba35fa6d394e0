"""Unit tests of `ScrambledAxes`."""

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.inputs import SwappedChannels
from diagnostics.facts.loss import FlattenedPair, ScrambledView
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.rules.model.scrambled_axes import ScrambledAxes


def test_names_scores_of_pixels_that_are_no_scores_of_one_pixel():
    finding = ScrambledAxes().from_graph(ScrambledView((16, 4, 12, 20), (3840, 4)))
    assert (finding.rule, finding.severity, finding.stage) == ("scrambled-axes", "error", "model")


def test_names_two_axes_that_were_to_be_exchanged():
    assert ScrambledAxes().from_graph(ScrambledView((8, 10, 3), (8, 3, 10))).severity == "error"


def test_names_labels_of_other_places_than_the_scores():
    assert ScrambledAxes().from_flattened(FlattenedPair((9, 32, 4), (32, 9))).severity == "error"


def test_silent_where_both_have_one_order():
    assert ScrambledAxes().from_flattened(FlattenedPair((9, 32, 4), (9, 32))) is None
    assert ScrambledAxes().from_flattened(FlattenedPair((9, 9, 4), (9, 9))) is None


def test_names_images_whose_rows_are_read_as_channels():
    finding = ScrambledAxes().from_images(SwappedChannels("conv2d", (32, 3, 16, 16)))
    assert finding.severity == "warning"


def pictures(count=16, side=32):
    """Return smooth colour images (n, height, width, 3)."""
    noise = np.random.default_rng(0).normal(size=(count, side + 8, side + 8, 3))
    for axis in (1, 2):
        sums = noise.cumsum(axis)
        noise = np.take(sums, range(8, sums.shape[axis]), axis) - np.take(sums, range(sums.shape[axis] - 8), axis)
    return noise.astype("float32")


def of_pixels(images):
    return ScrambledAxes().from_pixels(BatchFacts(len(images), {"0": images}))


def test_names_pictures_whose_channels_a_reshape_was_to_move_first():
    finding = of_pixels(pictures().reshape(16, 3, 32, 32))
    assert (finding.rule, finding.severity) == ("scrambled-axes", "warning")


def test_names_pictures_whose_channels_a_reshape_was_to_move_last():
    """As of CIFAR, whose files hold the channels first."""
    assert of_pixels(pictures().transpose(0, 3, 1, 2).reshape(16, 32, 32, 3)).severity == "warning"


def test_silent_on_pictures_in_order_and_on_noise():
    assert of_pixels(pictures().transpose(0, 3, 1, 2)) is None
    assert of_pixels(pictures()) is None
    assert of_pixels(np.random.default_rng(0).random((16, 3, 32, 32))) is None
    assert of_pixels(np.zeros((16, 3, 32, 32))) is None


def test_names_grey_pictures_of_three_equal_channels():
    assert of_pixels(np.repeat(pictures()[..., :1], 3, 3).reshape(16, 3, 32, 32)) is not None


def test_silent_on_few_or_small_or_grey_pictures():
    assert of_pixels(pictures(7).reshape(7, 3, 32, 32)) is None
    assert of_pixels(pictures(side=12).reshape(16, 3, 12, 12)) is None
    assert of_pixels(pictures()[..., :1].reshape(16, 1, 32, 32)) is None


def test_needs_images():
    with pytest.raises(NotApplicable):
        of_pixels(np.zeros((16, 8)))
