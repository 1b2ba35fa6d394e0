"""Target networks that are loaded with their own weights, as a finder of loops sees them."""

import copy

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.facts.calls import ObjectLedger
from diagnostics.rules.evaluation.weights_kept_by_reference import MIN_SELF_LOADS
from tests.pytorch.discover.watching import Watching


def net(width=16):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))


def own(target, policy):
    target.load_state_dict(target.state_dict())


def by_parts(target, policy):
    target.load_state_dict({name: value.data for name, value in target.named_parameters()})


def right(target, policy):
    target.load_state_dict(policy.state_dict())


def first_own_then_right(target, policy):
    if getattr(target, "loaded", False):
        target.load_state_dict(policy.state_dict())
    else:
        target.load_state_dict(target.state_dict())
        target.loaded = True


def copied(target, policy):
    target.load_state_dict(copy.deepcopy(target.state_dict()))


def of_the_trained_one(target, policy):
    policy.load_state_dict(policy.state_dict())


def found(update, target, times=3):
    facts, faults = [], []
    finder = LoopFinder(
        lambda model, optimizers: Watching(), faults.append, compare=lambda watching, more: facts.extend(more)
    )
    try:
        policy = net()
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        for step in range(2 * times):
            state = torch.randn(8, 4)
            with torch.no_grad():
                goal = target(state)
            optimizer.zero_grad()
            (policy(state) - goal).square().mean().backward()
            optimizer.step()
            if step % 2:
                update(target, policy)
    finally:
        finder.close()
    assert faults == []
    return [fact for fact in facts if isinstance(fact, ObjectLedger) and fact.self_loads >= MIN_SELF_LOADS]


@pytest.mark.parametrize("update", [own, by_parts])
def test_loads_of_its_own_weights_are_found(update):
    (ledger,) = found(update, net())
    assert (ledger.name, ledger.self_loads) == ("Sequential", 3)


@pytest.mark.parametrize("update", [right, first_own_then_right, copied, of_the_trained_one])
def test_other_loads_are_left_alone(update):
    assert found(update, net()) == []


def test_once_may_be_a_test_that_they_fit():
    assert found(own, net(), times=1) == []


def test_a_module_of_other_layers_is_no_target_network():
    assert found(own, net(width=8)) == []
