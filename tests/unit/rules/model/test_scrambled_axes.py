"""Unit tests of `ScrambledAxes`."""

from diagnostics.facts.inputs import SwappedChannels
from diagnostics.facts.loss import FlattenedPair
from diagnostics.facts.pipeline import ScrambledView
from diagnostics.rules.model.scrambled_axes import ScrambledAxes


def test_names_scores_of_pixels_that_are_no_scores_of_one_pixel():
    finding = ScrambledAxes().from_graph(ScrambledView((16, 4, 12, 20), (3840, 4)))
    assert (finding.rule, finding.severity, finding.stage) == ("scrambled-axes", "error", "model")
    assert finding.message == (
        "A view makes (3840, 4) of a tensor of shape (16, 4, 12, 20). A row of 4 numbers was to hold the 4 "
        "channels of one place; it holds neighbouring places of one channel: a view moves no axes."
    )
    assert finding.fix == "x.permute(0, 2, 3, 1).reshape(-1, 4)"


def test_names_two_axes_that_were_to_be_exchanged():
    finding = ScrambledAxes().from_graph(ScrambledView((8, 10, 3), (8, 3, 10)))
    assert finding.message.startswith(
        "A view makes (8, 3, 10) of a tensor of shape (8, 10, 3). It was to exchange"
    )
    assert finding.fix == "x.permute(0, 2, 1)"


def test_names_labels_of_other_places_than_the_scores():
    finding = ScrambledAxes().from_flattened(FlattenedPair((9, 32, 4), (32, 9)))
    assert finding.message == (
        "The scores have the shape (9, 32, 4), the labels (32, 9), and both were flattened for the loss. The 288 "
        "numbers fit, but the order of the axes differs: a score meets the label of another place, often of "
        "another example."
    )
    assert finding.fix == "loss_fn(scores.transpose(0, 1).reshape(-1, 4), labels.reshape(-1))"


def test_silent_where_both_have_one_order():
    assert ScrambledAxes().from_flattened(FlattenedPair((9, 32, 4), (9, 32))) is None
    assert ScrambledAxes().from_flattened(FlattenedPair((9, 9, 4), (9, 9))) is None


def test_names_images_whose_rows_are_read_as_channels():
    finding = ScrambledAxes().from_images(SwappedChannels("conv2d", (32, 3, 16, 16)))
    assert finding.severity == "warning"
    assert finding.message == (
        "The images have the shape (32, 3, 16, 16): channels first. The convolution conv2d reads them channels "
        "last, as 3 by 16 pixels with 16 channels each: it slides over the 3 channels and one side, and takes the "
        "other side for the channels."
    )
    assert finding.fix.startswith("x = x.transpose(0, 2, 3, 1)")
