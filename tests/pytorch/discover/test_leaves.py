"""Modules after the model that no optimizer holds, and their healthy neighbours, seen in a training loop."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.facts.loss_graph import LeafFacts
from tests.pytorch.discover.watching import Watching

INPUTS = torch.randn(16, 6, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(16) % 3


class Margin(nn.Module):
    """A loss with a weight of its own for each class."""

    def __init__(self):
        super().__init__()
        self.classes = nn.Linear(4, 3)

    def forward(self, features, labels):
        return nn.functional.cross_entropy(self.classes(features), labels)


def heads(criterion, *held, apart=False):
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD([p for module in (model, *held) for p in module.parameters()], lr=0.1)
    found, faults = [], []

    def examine(_watching, step):
        found.extend(fact for fact in step.optimizer_step() if isinstance(fact, LeafFacts))

    finder = LoopFinder(lambda *_: Watching(), faults.append, examine)
    try:
        own = torch.optim.SGD(criterion.parameters(), lr=0.1) if apart else None
        for _ in range(2):
            optimizer.zero_grad()
            criterion(model(INPUTS), LABELS).backward()
            optimizer.step()
        assert own is None or own.param_groups
    finally:
        finder.close()
    assert faults == []
    return [dict(facts.heads) for facts in found]


def test_finds_a_loss_whose_weights_no_optimizer_holds():
    assert heads(Margin()) == [{"Margin": 15}]


def loaded():
    margin = Margin()
    margin.load_state_dict(Margin().state_dict())
    return margin


@pytest.mark.parametrize(
    "criterion",
    [loaded(), Margin().eval(), Margin().requires_grad_(False)],
    ids=["loaded", "evaluating", "frozen"],
)
def test_leaves_out_one_that_is_as_it_is_meant(criterion):
    assert heads(criterion) == [{}]


def test_leaves_out_one_that_an_optimizer_holds():
    together = Margin()
    assert heads(together, together) == [{}]
    assert not any(heads(Margin(), apart=True))
