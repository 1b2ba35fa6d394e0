"""Running statistics of batch norm, compared with those of a batch, on a copy."""

from __future__ import annotations

import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.measure import measure
from diagnostics.collectors.pytorch.dependence.subject import Subject

TORCH = torch.Generator().manual_seed(0)
LABELS = torch.randint(0, 2, (40,), generator=TORCH)
ROWS = torch.randn(40, 4, generator=TORCH) + 30 + 3 * LABELS[:, None]


def classifier(norm=True):
    model = nn.Sequential(nn.BatchNorm1d(4) if norm else nn.Identity(), nn.Linear(4, 2))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[-1.0] * 4, [1.0] * 4]))
        model[1].bias.zero_()
    return model


def measured(model, target=LABELS):
    subject = Subject(model, lambda model, given: model(given["x"]), {"x": ROWS}, target=target)
    return measure(subject)


def test_statistics_that_have_seen_no_batch_lag():
    model = classifier()
    before = [tensor.clone() for tensor in (*model.parameters(), *model.buffers())]
    found = measured(model).statistics
    assert (found.rows, found.memory) == (40, 10)
    assert found.most_frequent == int(LABELS.bincount().max())
    assert found.right_with_own >= 38
    assert found.right_with_running == int(LABELS.sum())  # all are taken for class 1
    assert all(map(torch.equal, before, (*model.parameters(), *model.buffers())))


def test_statistics_that_have_settled_do_not():
    model = classifier()
    for _ in range(200):
        model.train()(ROWS)
    found = measured(model).statistics
    assert found.right_with_running == found.right_with_own >= 38


def test_a_mean_of_all_batches_has_no_end():
    model = classifier()
    model[0].momentum = None
    assert measured(model).statistics.memory == float("inf")


def test_one_hot_labels_are_classes():
    assert measured(classifier(), nn.functional.one_hot(LABELS, 2).float()).statistics.right_with_own >= 38


def test_needs_batch_norm_and_labels():
    for model, target, why in (
        (classifier(norm=False), LABELS, "the model has no batch norm with running statistics"),
        (classifier(), LABELS.float(), "the labels of the batch are not known"),
    ):
        found = measured(model, target)
        assert found.statistics is None
        assert found.why_not["statistics"] == why
