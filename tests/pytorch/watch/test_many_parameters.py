"""A model of so many small parameters that to measure the gradients of each step would cost too much on a CPU."""

import math

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.optimizer_steps import MANY
from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from tests.pytorch.watched import batch


def train(width, layers, steps, *, broken_at=None, every=10, deferred=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, width), *(nn.LayerNorm(width) for _ in range(layers)), nn.Linear(width, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = TorchWatcher(model, [optimizer], every, deferred)
    for step in range(steps):
        inputs, labels = batch(step)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        if step == broken_at:
            next(model.parameters()).grad[0] = math.nan
        optimizer.step()
        watch.step(loss)
    watch.close()
    assert watch.faults == {}
    return watch


@pytest.mark.parametrize(
    ("layers", "deferred", "measured"),
    [
        (MANY // 2 - 2, False, range(14)),
        (MANY // 2, False, [0, 1, 2, 4, 8, 10, 12]),
        (MANY // 2, True, range(14)),
    ],
    ids=["a thousand", "more", "more, on an accelerator"],
)
def test_gradients_are_measured_in_one_step_of_four(layers, deferred, measured):
    history = train(4, layers, 14, deferred=deferred).history()
    assert history.gradients.steps.tolist() == list(measured)
    assert history.losses.steps.tolist() == list(range(14))
    assert (history.gradients.layer_norms > 0).all()


@pytest.mark.parametrize("broken_at", [12, 13], ids=["measured", "between"])
def test_the_step_whose_gradient_is_not_finite_is_found(broken_at):
    watch = train(4, MANY // 2, 20, broken_at=broken_at)
    assert watch.origin.step == broken_at
