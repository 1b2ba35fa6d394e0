"""Loads with `strict=False` into models that are evaluated alone, as a finder of loops sees them."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.collectors.pytorch.new_weights import new_weights
from diagnostics.facts.calls import LoadedKeys, ObjectLedger
from tests.pytorch.discover.watching import Watching


def net():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))


def train(model, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


def found(serve):
    """Return the facts on loads of a script that trains a model and then serves its state."""
    facts, faults = [], []
    finder = LoopFinder(
        lambda model, optimizers: Watching(), faults.append, compare=lambda watching, more: facts.extend(more)
    )
    try:
        trained = net()
        train(trained)
        serve(trained, {f"module.{name}": value.clone() for name, value in trained.state_dict().items()})
    finally:
        finder.close()
    assert not faults
    return [fact for fact in facts if isinstance(fact, LoadedKeys)]


def load_and_test(trained, state):
    served = net()
    served.load_state_dict(state, strict=False)
    for _ in range(3):
        with torch.no_grad():
            served(torch.randn(8, 4))


def test_a_model_that_is_tested_without_what_it_loaded_is_found_once():
    (fact,) = found(load_and_test)
    assert (fact.model, fact.keys, fact.loaded, fact.trained) == ("Sequential", 4, 0, False)
    assert fact.where.function == "load_and_test"


def test_the_part_of_a_model_that_was_loaded_is_found():
    def serve(trained, state):
        whole = nn.Sequential(net(), nn.Sigmoid())
        whole[0].load_state_dict(state, strict=False)
        with torch.no_grad():
            whole(torch.randn(8, 4))

    assert len(found(serve)) == 1


def never_called(trained, state):
    net().load_state_dict(state, strict=False)


def loaded_again(trained, state):
    served = net()
    served.load_state_dict(state, strict=False)
    served.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    with torch.no_grad():
        served(torch.randn(8, 4))


def copied_by_hand(trained, state):
    served = net()
    served.load_state_dict(state, strict=False)
    for parameter, value in zip(served.parameters(), state.values(), strict=True):
        parameter.data = value.clone()
    with torch.no_grad():
        served(torch.randn(8, 4))


def trained_after_its_test(trained, state):
    """Load a model, test it and train it: what watches its training reports the load."""
    tuned = net()
    tuned.load_state_dict(state, strict=False)
    with torch.no_grad():
        tuned(torch.randn(8, 4))
    train(tuned)


def into_the_trained_one(trained, state):
    trained.load_state_dict(state, strict=False)
    with torch.no_grad():
        trained(torch.randn(8, 4))


@pytest.mark.parametrize(
    "serve", [never_called, loaded_again, copied_by_hand, trained_after_its_test, into_the_trained_one]
)
def test_silent_where_the_load_was_mended_or_is_reported_elsewhere(serve):
    assert found(serve) == []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(4, 64), nn.Linear(64, 3)

    def forward(self, inputs):
        return self.head(torch.relu(self.trunk(inputs)))


def evaluate(model):
    with torch.no_grad():
        model(torch.randn(8, 4))


def state_of(model, part):
    return {name: value.clone() for name, value in model.state_dict().items() if name.startswith(part)}


class TestSavedInPart:
    """A model is trained; another of its class loads a part of its state, and is tested."""

    @staticmethod
    def ledgers(serve, freeze=""):
        facts, faults = [], []
        finder = LoopFinder(
            lambda model, optimizers: Watching(), faults.append, compare=lambda watching, more: facts.extend(more)
        )
        unsubscribe = new_weights.listen(FaultGuard(on_fault=faults.append))
        try:
            trained = Net()
            before = state_of(trained, "trunk")
            for name, parameter in trained.named_parameters():
                parameter.requires_grad_(not freeze or not name.startswith(freeze))
            train(trained)
            serve(trained, before)
        finally:
            finder.close()
            unsubscribe()
        assert not faults
        return [fact for fact in facts if isinstance(fact, ObjectLedger) and fact.lost]

    def test_names_the_head_that_was_not_saved(self):
        def serve(trained, before):
            served = Net()
            served.load_state_dict(state_of(trained, "trunk"), strict=False)
            evaluate(served)
            evaluate(served)

        (ledger,) = self.ledgers(serve)
        assert (ledger.name, ledger.lost, ledger.restored) == ("Net", {"head.weight": 192}, 1)

    def test_is_silent_where_the_trunk_is_the_one_before_the_training(self):
        def serve(trained, before):
            baseline = Net()
            baseline.load_state_dict(before, strict=False)
            evaluate(baseline)

        assert self.ledgers(serve) == []

    def test_is_silent_where_the_shared_trunk_was_frozen(self):
        def serve(trained, before):
            probe = Net()
            probe.load_state_dict(state_of(trained, "trunk"), strict=False)
            evaluate(probe)

        assert self.ledgers(serve, freeze="trunk") == []

    def test_is_silent_where_the_head_comes_by_another_way(self):
        def serve(trained, before):
            served = Net()
            served.load_state_dict(state_of(trained, "trunk"), strict=False)
            served.head.weight.data.copy_(trained.head.weight)
            evaluate(served)

        assert self.ledgers(serve) == []

    def test_is_silent_where_the_head_is_trained_after_the_test(self):
        def serve(trained, before):
            second = Net()
            second.load_state_dict(state_of(trained, "trunk"), strict=False)
            evaluate(second)
            train(second)

        assert self.ledgers(serve) == []
