"""What stands in a loader's batch beside the input of a model."""

import torch

from diagnostics.collectors.pytorch.discover.batch_source import LatestBatch

INPUT, LABELS = torch.randn(6, 3), torch.arange(6)


def beside(batch, arguments):
    latest = LatestBatch()
    latest.gives(batch, object())
    return latest.labels_beside(arguments)


def test_the_only_integers_of_as_many_rows_are_returned():
    assert beside([INPUT, LABELS], ((INPUT,), {})) is LABELS
    assert beside({"x": INPUT, "y": LABELS}, ((INPUT.view(6, 3, 1),), {})) is LABELS


def test_nothing_is_returned_where_that_is_not_known():
    row = torch.zeros(6, dtype=torch.long)
    assert beside([INPUT, LABELS, row], ((INPUT,), {})) is None
    assert beside([INPUT, LABELS], ((torch.randn(6, 3),), {})) is None
    assert beside([INPUT, LABELS[:5]], ((INPUT,), {})) is None
    assert beside([INPUT], ((INPUT,), {})) is None


def test_nothing_is_kept_alive():
    latest = LatestBatch()
    latest.gives([torch.randn(6, 3), torch.arange(6)], object())
    assert latest.labels_beside(((INPUT,), {})) is None


def test_the_target_has_the_sizes_of_the_output():
    latest, masks, output = LatestBatch(), torch.rand(6, 4, 4), torch.rand(6, 1, 4, 4)
    for batch, expected in (
        ([INPUT, masks], masks),
        ([INPUT, masks[:5]], None),
        ([INPUT, masks, masks.clone()], None),
        ([torch.randn(6, 3), masks], None),
    ):
        latest.gives(batch, object())
        assert latest.target_beside(((INPUT,), {}), output) is expected
