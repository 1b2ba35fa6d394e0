"""Models without activations, and models that resemble them."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.measure import measure
from diagnostics.collectors.pytorch.dependence.subject import Subject

ROWS = torch.randn(32, 6, generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(32, 1, 12, 12, generator=torch.Generator().manual_seed(1))


def linear_of(model, inputs=ROWS):
    torch.manual_seed(0)
    before = [p.detach().clone() for p in model.parameters()]
    subject = Subject(model, lambda module, given: module(given["x"]), {"x": inputs}, batch_first=True)
    facts = measure(subject)
    assert all(map(torch.equal, before, model.parameters()))
    return facts


def row(*between, last=()):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), *between, nn.Linear(16, 3), *last)


def test_linear_layers_in_a_row():
    found = linear_of(row()).linear
    assert found.layers == ("0 (Linear)", "1 (Linear)")
    assert (found.narrowest, found.inputs, found.outputs) == (3, 6, 3)


@pytest.mark.parametrize(
    "model",
    [
        row(nn.Dropout(0.5)),
        row(nn.BatchNorm1d(16)),
        row(last=[nn.Softmax(dim=1)]),
        row(last=[nn.LogSoftmax(dim=1)]),
        row(last=[nn.Sigmoid()]),
    ],
    ids=["dropout", "batch norm", "softmax", "log softmax", "sigmoid"],
)
def test_what_stands_between_and_behind_does_not_matter(model):
    assert len(linear_of(model).linear.layers) == 2


def test_convolutions_in_a_row():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.AvgPool2d(2), nn.Conv2d(4, 8, 3), nn.Flatten(), nn.Linear(72, 10), nn.Linear(10, 2)
    )
    assert [name.split()[1] for name in linear_of(model, IMAGES).linear.layers] == [
        "(Conv2d)", "(Conv2d)", "(Linear)", "(Linear)",
    ]  # fmt: skip


@pytest.mark.parametrize("between", [nn.ReLU(), nn.Tanh(), nn.GELU(), nn.LeakyReLU(), nn.LayerNorm(16)], ids=repr)
def test_an_activation_or_a_norm_is_not_linear(between):
    facts = linear_of(row(between))
    assert facts.linear is None
    assert "linear" not in facts.why_not


def test_one_layer_is_a_linear_regression():
    assert linear_of(nn.Linear(6, 1)).linear is None


def test_a_tanh_near_zero_is_not_linear():
    model = row(nn.Tanh())
    with torch.no_grad():
        model[0].weight.mul_(1e-3)
    assert linear_of(model).linear is None


def test_a_relu_that_is_always_on_is_not_linear():
    model = row(nn.ReLU())
    with torch.no_grad():
        model[0].bias.add_(8)
    assert linear_of(model).linear is None


class Beside(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        return self.left(x) + self.right(x)


def test_layers_beside_each_other_are_no_row():
    torch.manual_seed(0)
    assert linear_of(Beside()).linear is None


def test_tokens_are_not_judged():
    model = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(48, 3))
    facts = linear_of(model, torch.randint(0, 20, (32, 6), generator=torch.Generator().manual_seed(0)))
    assert facts.linear is None
    assert facts.why_not["linear"] == "needs a numeric input, not token ids"
