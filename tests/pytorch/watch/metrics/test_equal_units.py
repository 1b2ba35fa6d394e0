"""Which weights a watched run leaves with equal units."""

import torch
from torch import nn

from diagnostics.facts.layers import EqualUnitsFacts
from tests.pytorch.watched import mlp, run


def equal(model, **options):
    (facts,) = [facts for facts in run(model, 12, **options).course() if isinstance(facts, EqualUnitsFacts)]
    return facts.weights


def test_units_that_start_equal_stay_equal():
    model = mlp()
    nn.init.constant_(model[0].weight, 0.1)
    nn.init.zeros_(model[0].bias)
    assert equal(model) == ()  # the next layer tells them apart
    nn.init.constant_(model[0].weight, 0.1)
    nn.init.zeros_(model[0].bias)
    nn.init.constant_(model[2].weight, 0.1)
    assert equal(model) == ("0.weight",)  # the outputs have targets of their own


def test_zeros_that_move_apart_are_not_named():
    model = mlp()
    nn.init.zeros_(model[2].weight)
    assert equal(model) == ()


def test_weights_that_do_not_change_are_not_named():
    model = mlp()
    nn.init.constant_(model[0].weight, 0.1)
    assert equal(model, optimizer=torch.optim.SGD([{"params": model[2].parameters()}], lr=0.1)) == ()
