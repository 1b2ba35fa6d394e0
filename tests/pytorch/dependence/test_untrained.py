"""Weights that a checkpoint lacked, and that nothing has trained."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.dependence.measure import compare_untrained
from diagnostics.collectors.pytorch.dependence.subject import Subject
from diagnostics.collectors.pytorch.new_weights import NewWeights


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.spare = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        self.spare(hidden)
        return self.head(hidden)


@pytest.fixture
def weights():
    """Observe the loads of one test."""
    faults, found = [], NewWeights()
    unsubscribe = found.listen(FaultGuard(on_fault=faults.append))
    yield found
    unsubscribe()
    assert faults == []


def loaded(*without):
    torch.manual_seed(0)
    net = Net()
    state = {name: value for name, value in Net().state_dict().items() if not name.startswith(without)}
    net.load_state_dict(state, strict=False)
    return net.requires_grad_(False)


def measured(net, weights):
    inputs = {"x": torch.randn(5, 6)}
    return compare_untrained(Subject(net, lambda model, given: model(given["x"]), inputs), weights.frozen_in(net))


def test_a_frozen_head_that_the_checkpoint_lacked(weights):
    found = measured(loaded("head"), weights)
    assert (found.weights, found.last) == ({"head.weight": 24}, True)


def test_a_frozen_layer_before_a_trained_head(weights):
    net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 30))
    state = {name: value for name, value in net.state_dict().items() if name.startswith("1")}
    net.load_state_dict(state, strict=False)
    net[0].requires_grad_(False)
    found = compare_untrained(
        Subject(net, lambda model, given: model(given["x"]), {"x": torch.randn(5, 6)}), weights.frozen_in(net)
    )
    assert (found.weights, found.last) == ({"0.weight": 48}, False)


def test_a_layer_whose_output_is_not_used(weights):
    assert weights.frozen_in(net := loaded("spare")) == {"spare.weight": 24}
    assert measured(net, weights) is None


def test_a_head_that_was_trained(weights):
    net = loaded("head")
    with torch.no_grad():
        net.head.weight += 0.1
    assert weights.frozen_in(net) == {}
    net = loaded("head")
    net.head.requires_grad_(True)
    assert weights.frozen_in(net) == {}


def test_a_checkpoint_of_an_adapter_says_nothing_of_the_rest(weights):
    assert weights.frozen_in(loaded("body", "head")) == {}


def test_random_features_without_a_checkpoint(weights):
    assert weights.frozen_in(Net().requires_grad_(False)) == {}
