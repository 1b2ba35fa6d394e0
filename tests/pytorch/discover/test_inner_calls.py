"""Layers that a model makes within its forward pass, and their healthy neighbours, seen in a training loop."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.facts.loss_graph import LeafFacts
from tests.pytorch.discover.watching import Watching

INPUTS = torch.randn(16, 6, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(16) % 3


class Net(nn.Module):
    """Two trained layers, and between them whatever a test puts there."""

    def __init__(self, between, before=None):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.between, self.before = between, before

    def forward(self, x):
        if self.before is not None:
            x = self.before(x)
        return self.last(torch.relu(self.between(self, self.first(x))))


def vanished(model, *further):
    """Train for two steps; return what was found of layers that ended with the forward pass."""
    found, faults = [], []

    def examine(_watching, step):
        found.extend(fact for fact in step.optimizer_step() if isinstance(fact, LeafFacts))

    finder = LoopFinder(lambda *_: Watching(), faults.append, examine)
    try:
        optimizer = torch.optim.SGD([p for module in (model, *further) for p in module.parameters()], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(INPUTS), LABELS).backward()
            optimizer.step()
    finally:
        finder.close()
    assert faults == []
    (facts,) = found
    return dict(facts.vanished)


def named(_net, x):
    layer = nn.Linear(8, 8)
    return layer(x)


@pytest.mark.parametrize(
    "between",
    [
        lambda _net, x: nn.Linear(8, 8)(x),
        named,
        lambda _net, x: nn.Sequential(nn.Linear(8, 8, bias=False), nn.ReLU())(x),
    ],
    ids=["at once", "by a name", "in a sequence"],
)
def test_a_layer_made_in_forward_is_found(between):
    assert vanished(Net(between)) == {"Linear": 64}


def test_two_layers_are_counted_together():
    assert vanished(Net(lambda _net, x: nn.Linear(8, 8)(nn.Linear(8, 8)(x)))) == {"Linear": 128}


@pytest.mark.parametrize(
    "between",
    [
        lambda _net, x: nn.LayerNorm(8)(x),
        lambda _net, x: nn.Linear(8, 8).requires_grad_(False)(x),
        lambda net, x: nn.Sequential(net.spare, nn.ReLU())(x),
        lambda net, x: nn.Dropout(0.1)(net.spare(x)),
    ],
    ids=["a norm", "a frozen layer", "a wrapper of a registered layer", "dropout"],
)
def test_other_layers_made_in_forward_are_not(between):
    net = Net(between)
    net.spare = nn.Linear(8, 8)
    assert vanished(net) == {}


def test_a_random_layer_ahead_of_the_trained_ones_is_an_augmentation():
    assert vanished(Net(lambda _net, x: x, before=lambda x: nn.Linear(6, 6)(x))) == {}


def test_a_layer_that_the_script_keeps_and_trains_is_not():
    kept = nn.Linear(8, 8)
    assert vanished(Net(lambda _net, x: kept(x)), kept) == {}


def test_a_layer_that_learns_its_shape_in_the_first_pass_is_not():
    net = Net(lambda net, x: net.late(x))
    net.late = nn.LazyLinear(8)
    assert vanished(net) == {}
