"""Optimizers that are re-created for each step, as a finder of loops counts them."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.collectors.pytorch.optimizer import optimizer_facts
from diagnostics.facts.calls import ObjectLedger
from tests.pytorch.discover.watching import Watching

INPUTS = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def told():
    told, faults = [], []
    finder = LoopFinder(
        lambda model, optimizers: Watching(), faults.append, compare=lambda watching, facts: told.extend(facts)
    )
    yield told
    finder.close()
    assert faults == []


def train(make, times=30, steps=1, before=lambda model: None):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    for _ in range(times):
        before(model)
        optimizer = make(model.parameters())
        for _ in range(steps):
            optimizer.zero_grad()
            model(INPUTS).square().mean().backward()
            optimizer.step()


@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: torch.optim.Adam(parameters),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    ],
    ids=["adam", "momentum"],
)
def test_one_for_each_step_is_told_once(told, make):
    train(make)
    assert [fact.lone_steps for fact in told if isinstance(fact, ObjectLedger)] == [20]


@pytest.mark.parametrize(
    "options",
    [
        {"make": lambda parameters: torch.optim.SGD(parameters, lr=0.1)},
        {"make": torch.optim.Adam, "steps": 2},
        {"make": torch.optim.Adam, "times": 15},
        {"make": torch.optim.Adam, "before": lambda model: model.load_state_dict(model.state_dict())},
    ],
    ids=["without a state", "of some steps", "a few", "of restored weights"],
)
def test_nothing_of_one_that_loses_nothing(told, options):
    train(**options)
    assert not any(isinstance(fact, ObjectLedger) for fact in told)


def test_the_full_rate_of_a_cycle_is_its_peak():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.004)
    torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=100)
    assert optimizer_facts(optimizer, model).full_rate == 0.1
