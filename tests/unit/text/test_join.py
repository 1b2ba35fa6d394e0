import pytest

from diagnostics.text.join import among, layers_named


@pytest.mark.parametrize(
    ("paths", "most", "named"),
    [
        (("bn", "drop"), None, "bn and drop"),
        (("1",), 4, "layer 1 of Sequential"),
        (("1", "3"), 4, "layers 1 and 3 of Sequential"),
        (("0.1", "0.4", "2", "5"), 2, "layers 0.1, 0.4 and 2 more of Sequential"),
        (("1", "body.drop"), 4, "layer 1 of Sequential, and body.drop"),
        (("1", "body.a", "body.b"), 1, "layer 1 of Sequential, and 2 more"),
    ],
)
def test_layers_that_are_numbers_are_called_layers_of_a_sequential(paths, most, named):
    assert layers_named(paths, most) == named


@pytest.mark.parametrize(
    ("part", "whole", "written"),
    [
        (1, 3, "1 of the 3 batches"),
        (1200, 3000, "1,200 of the 3,000 batches"),
        (3, 3, "all 3 batches"),
        (2, 2, "both batches"),
        (1, 1, "the only batch"),
    ],
)
def test_counts_a_part_of_a_whole(part, whole, written):
    assert among(part, whole, "batch", "batches") == written
