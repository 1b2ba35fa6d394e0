"""Parameters that stand between the outputs and the loss get their gradients before the outputs do."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss, normalize

from diagnostics.collectors.pytorch.watch.record.norms import Layers, beside_outputs
from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher


class TwoTasks(nn.Module):
    """Weighs two losses by what it learns of their noise."""

    def __init__(self):
        super().__init__()
        self.body, self.heads = nn.Linear(4, 8), nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 3)])
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return self.heads[0](hidden), self.heads[1](hidden)

    def loss(self, x, y):
        number, scores = self(x)
        first, second = mse_loss(number, x[:, :1]), cross_entropy(scores, y)
        return first * torch.exp(-self.log_vars[0]) + second * torch.exp(-self.log_vars[1]) + self.log_vars.sum()


class Policy(nn.Module):
    """Learns the spread of its actions beside their mean."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return self.mean(x)

    def loss(self, x, y):
        actions = torch.distributions.Normal(self(x), self.log_std.exp())
        return -(actions.log_prob(x[:, 2:]) * (1.0 + y[:, None])).mean()


class Margins(nn.Module):
    """Compares what it embeds with centres of the classes that only the loss reads."""

    def __init__(self):
        super().__init__()
        self.body, self.centres = nn.Linear(4, 8), nn.Parameter(torch.randn(3, 8))

    def forward(self, x):
        return normalize(self.body(x))

    def loss(self, x, y):
        return cross_entropy(8 * self(x) @ normalize(self.centres).T, y)


def trained(model, clear):
    """Train for 8 steps; return what was seen of the gradients at the start of each backward pass."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    watch = TorchWatcher(model, [optimizer], 4)
    for step in range(8):
        draw = torch.Generator().manual_seed(step)
        x, y = torch.randn(16, 4, generator=draw), torch.randint(3, (16,), generator=draw)
        loss = model.loss(x, y)
        clear(optimizer)
        loss.backward()
        optimizer.step()
    watch.close()
    return watch.history().steps.gradients_zeroed.tolist()


@pytest.mark.parametrize("model", [TwoTasks, Policy, Margins])
@pytest.mark.parametrize("to_none", [True, False])
def test_what_only_the_loss_reads_is_no_leftover(model, to_none):
    torch.manual_seed(0)
    assert trained(model(), lambda optimizer: optimizer.zero_grad(set_to_none=to_none)) == [-1] + [1] * 7


@pytest.mark.parametrize("model", [TwoTasks, Policy, Margins])
def test_gradients_that_pile_up_beside_it_are_seen_to(model):
    torch.manual_seed(0)
    assert trained(model(), lambda optimizer: None) == [-1] + [0] * 7


def test_a_graph_without_parameters_tells_nothing():
    assert beside_outputs([torch.ones(2, requires_grad=True) * 2], Layers(TwoTasks())) == frozenset()


def test_the_weights_of_the_losses_are_beside_the_outputs():
    model = TwoTasks()
    layers = Layers(model)
    names = list(layers.parameters)
    assert [names[number] for number in beside_outputs(list(model(torch.ones(2, 4))), layers)] == ["log_vars"]


@pytest.mark.parametrize("cleared", [True, False])
@pytest.mark.parametrize("of", ["forces", "penalty", "attack"])
def test_a_gradient_of_the_inputs_begins_no_backward_pass(of, cleared):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    watch = TorchWatcher(model, [optimizer], 4)
    for step in range(8):
        x = torch.randn(16, 4, generator=torch.Generator().manual_seed(step)).requires_grad_()
        energy = model(x)
        (slope,) = torch.autograd.grad(energy.sum(), x, create_graph=of != "attack", retain_graph=True)
        if of == "attack":
            loss = mse_loss(model(x + 0.1 * slope.sign()), x[:, :1])
        else:
            loss = (
                mse_loss(energy, x[:, :1]) + ((slope.norm(dim=1) - 1) ** 2 if of == "penalty" else slope**2).mean()
            )
        if cleared:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    watch.close()
    assert watch.history().steps.gradients_zeroed.tolist() == [-1] + [int(cleared)] * 7
