"""The cross entropies of a step: how many targets each counts, and what it weighs in the gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from diagnostics.facts.loss_call import AccumulatedLosses
from diagnostics.taps.exchanged_code import overheard

WORDS = 11
LENGTHS = (2, 9, 4)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.score = nn.Embedding(WORDS, 6), nn.Linear(6, WORDS)

    def forward(self, tokens):
        return self.score(self.embed(tokens))


def texts(counts, rows=2):
    """Return tokens and labels of micro-batches with so many labels that count."""
    for count in counts:
        tokens = torch.randint(WORDS, (rows, 10))
        labels = tokens.clone().fill_(-100)
        labels.view(-1)[:count] = 3
        yield tokens, labels


def mean(scores, labels, passes):
    return F.cross_entropy(scores.view(-1, WORDS), labels.view(-1)) / passes


def watched(loss_of=mean, steps=6, counts=LENGTHS, between=lambda model: None):
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = TorchWatcher(model, [optimizer], 20)
    for _ in range(steps):
        optimizer.zero_grad()
        for tokens, labels in texts(counts):
            loss_of(model(tokens), labels, len(counts)).backward()
        optimizer.step()
        watch.step(None)
        between(model)
    watch.close()
    assert watch.faults == {}
    assert not overheard.is_heard([F.cross_entropy])
    return next((fact for fact in watch.course() if isinstance(fact, AccumulatedLosses)), None)


def test_hears_the_losses_of_each_step_but_the_first():
    found = watched()
    assert len(found.targets) == 5
    for rows, targets, weights in zip(found.rows, found.targets, found.weights, strict=True):
        assert rows.tolist() == [2, 2, 2]
        assert targets.tolist() == list(LENGTHS)
        np.testing.assert_allclose(weights, 1 / 3, rtol=1e-6)


def by_tokens(scores, labels, _passes):
    return F.cross_entropy(scores.transpose(1, 2), labels) * (labels != -100).sum() / sum(LENGTHS)


def summed(scores, labels, _passes):
    return F.cross_entropy(scores.reshape(-1, WORDS), labels.reshape(-1), reduction="sum") / sum(LENGTHS)


def of_a_slice(scores, labels, _passes):
    shifted = scores[:, :-1].reshape(-1, WORDS).float()
    return nn.CrossEntropyLoss(reduction="sum")(shifted, labels[:, :-1].flatten()) / sum(LENGTHS)


@pytest.mark.parametrize("loss_of", [by_tokens, summed, of_a_slice])
def test_weighs_by_what_reaches_the_loss(loss_of):
    found = watched(loss_of)
    assert len(found.targets) == 5
    for rows, targets, weights in zip(found.rows, found.targets, found.weights, strict=True):
        assert rows.tolist() == [2, 2, 2]
        np.testing.assert_allclose(weights, targets / sum(LENGTHS), rtol=1e-5)


def of_rows(scores, labels, passes):
    return F.cross_entropy(scores.mean(1), labels[:, 0].clamp(min=0)) / passes


def twice(scores, labels, passes):
    return mean(scores, labels, passes) + mean(2 * scores, labels, passes)


@pytest.mark.parametrize("loss_of", [of_rows, twice], ids=["one label a row", "several losses a pass"])
def test_hears_nothing_else(loss_of):
    assert watched(loss_of) is None


def test_hears_nothing_where_each_step_has_one_pass():
    assert watched(counts=(9,)) is None


def test_losses_without_gradients_do_not_count():
    def evaluate(model):
        with torch.no_grad():
            for tokens, labels in texts((5, 6)):
                mean(model(tokens), labels, 2)

    found = watched(between=evaluate)
    assert found is None or all(targets.tolist() == list(LENGTHS) for targets in found.targets)


def test_listens_to_a_few_steps():
    assert len(watched(steps=20).targets) == 7
