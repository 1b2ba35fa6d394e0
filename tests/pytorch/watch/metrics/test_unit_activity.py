"""Which ReLUs a watched run counts the dead units of: modules, and functions by the layer that they feed."""

import pytest
import torch
from torch import nn

from diagnostics.facts.layers import ActivityFacts
from tests.pytorch.watched import run


class Net(nn.Module):
    """Two layers with an activation between them."""

    def __init__(self, activation, bias=0.0):
        super().__init__()
        self.first, self.last, self.activation = nn.Linear(8, 6), nn.Linear(6, 3), activation
        nn.init.constant_(self.first.bias, bias)

    def forward(self, inputs):
        return self.last(self.activation(self.first(inputs)))


def activity(model):
    return [
        layer for facts in run(model, 12).course() if isinstance(facts, ActivityFacts) for layer in facts.layers
    ]


@pytest.mark.parametrize("function", [torch.relu, nn.functional.relu, lambda x: x.clamp(min=0)])
def test_function_is_counted_as_the_input_of_the_next_layer(function):
    (layer,) = activity(Net(function, bias=-50.0))
    assert (layer.layer, layer.function, layer.hidden) == ("input of last", "relu", True)
    assert set(layer.dead) == set(layer.units) == {6}


def test_module_is_counted_once():
    (layer,) = activity(Net(nn.ReLU()))
    assert (layer.layer, layer.hidden) == ("activation", True)


@pytest.mark.parametrize("function", [torch.tanh, nn.functional.gelu, lambda x: x])
def test_other_functions_have_no_dead_units(function):
    assert activity(Net(function)) == []
