"""Shapes that a message names, of masks and of what a tensor is written into, and what they suggest."""

import pytest

import diagnostics

SPATIAL = (
    "RuntimeError: 1only batches of spatial targets supported (non-empty 3D tensors) but got targets of size: : {}"
)
EXPANDED = (
    "RuntimeError: The expanded size of the tensor ({0}) must match the existing size ({1}) at non-singleton "
    "dimension {2}.  Target sizes: {3}.  Tensor sizes: {4}."
)
OPERANDS = (
    "RuntimeError: The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}"
)


def told(text):
    (finding,) = diagnostics.explain(text).findings
    return finding


@pytest.mark.parametrize(
    ("shape", "fix"),
    [
        ([2, 1, 64, 64], "target = target.squeeze(1)"),
        ([2, 8, 64, 64], "target = target.argmax(dim=1), if it has one channel per class"),
        ([2, 64, 64, 3], "target = target.argmax(dim=3), if it has one channel per class"),
    ],
)
def test_the_axis_that_a_mask_has_too_many_is_named(shape, fix):
    finding = told(SPATIAL.format(shape))
    assert finding.rule == "broadcast-loss"
    assert f"the mask has shape {tuple(shape)}" in finding.message
    assert f"an extra axis (axis {3 if shape[1] > 8 else 1}, of size" in finding.message
    assert finding.fix == fix


def test_images_of_two_sizes_are_to_be_resized():
    finding = told(EXPANDED.format(654, 675, 2, [1, 3, 654, 900], [3, 675, 900]))
    assert "shape (3, 675, 900) cannot be written into one of shape (1, 3, 654, 900)" in finding.message
    assert "F.interpolate" in finding.fix


def test_vectors_of_two_lengths_are_told_without_images():
    finding = told(EXPANDED.format(600, 514, 1, [2, 600], [1, 514]))
    assert "sizes 514 and 600 along axis 1 differ" in finding.message
    assert "interpolate" not in finding.fix


def test_three_channels_beside_many_are_colours():
    assert 'convert("L")' in told(OPERANDS.format(64, 3, 1)).message


@pytest.mark.parametrize("sizes", [(64, 5, 1), (64, 3, 2), (12, 3, 1)])
def test_other_sizes_are_not(sizes):
    assert "colours" not in told(OPERANDS.format(*sizes)).message
