"""Losses that a loop computes, and the sum that it differentiates."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import diagnostics

RNG = torch.Generator().manual_seed(0)
X = torch.randn(256, 3, generator=RNG)
ENERGY = X.square().sum(1)
LABELS = (X[:, 0] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 16), nn.Tanh())
        self.energy, self.kind = nn.Linear(16, 1), nn.Linear(16, 2)

    def forward(self, x):
        hidden = self.body(x)
        return self.energy(hidden)[:, 0], self.kind(hidden)


def found(step, steps=16, frozen=False):
    """Return the findings of a loop whose loss is `step(model, rows)`."""
    torch.manual_seed(0)
    model = Net()
    if frozen:
        model.kind.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    watch = diagnostics.watch(model, optimizer, every=1)
    for number in range(steps):
        rows = torch.arange(256).roll(-16 * number)[:16]
        loss = step(model, rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        watch.step(loss)
    report = watch.report()
    assert not report.faults
    return {finding.rule: finding for finding in report.findings}


def forces(model, rows, **options):
    at = X[rows].clone().requires_grad_(True)
    energy, _ = model(at)
    (slope,) = torch.autograd.grad(energy.sum(), at, retain_graph=True, **options)
    return F.mse_loss(energy, ENERGY[rows]) + 0.5 * F.mse_loss(slope, 2 * X[rows])


def test_names_a_term_of_a_derivative_without_a_graph():
    finding = found(forces)["no-gradient"]
    assert finding.severity == "warning"
    assert finding.evidence["function"] == "mse_loss"
    assert "no-gradient" not in found(lambda model, rows: forces(model, rows, create_graph=True))


def test_names_a_term_of_decisions():
    def step(model, rows):
        energy, kind = model(X[rows])
        share = F.l1_loss(kind.argmax(1).float(), LABELS[rows].float())
        return (F.smooth_l1_loss(energy, ENERGY[rows]) + share) / 2

    assert found(step)["no-gradient"].evidence["function"] == "l1_loss"
    assert found(step, frozen=True)["no-gradient"].severity == "note"


def test_names_a_divergence_of_a_prediction_from_itself():
    teacher = Net()

    def step(model, rows, student=True):
        _, kind = model(X[rows])
        with torch.no_grad():
            _, aim = teacher(X[rows])
        guess = kind if student else aim
        soft = F.kl_div(F.log_softmax(guess, 1), F.softmax(aim, 1), reduction="batchmean")
        return 0.8 * soft + 0.2 * F.cross_entropy(kind, LABELS[rows])

    finding = found(lambda model, rows: step(model, rows, student=False))["no-gradient"]
    assert (finding.evidence["function"], finding.evidence["share"]) == ("kl_div", 0)
    assert "no-gradient" not in found(step)


@pytest.mark.parametrize(
    "loss",
    [
        lambda own, other, _: own,  # the other one is computed for a log
        lambda own, other, _: sum([own, own * 0.5]),
        lambda own, other, value: own + 0 * other + 1.0,
        lambda own, other, value: ((value - 1) ** 2).mean() + own,
        lambda own, other, value: own * other.item(),
    ],
)
def test_silent_on_a_loss_beside_the_sum(loss):
    def step(model, rows):
        energy, kind = model(X[rows])
        other = F.mse_loss(energy.detach(), ENERGY[rows])
        return loss(F.cross_entropy(kind, LABELS[rows]) + F.mse_loss(energy, ENERGY[rows]), other, energy)

    assert "no-gradient" not in found(step)


def test_silent_where_too_few_steps_were_made():
    assert "no-gradient" not in found(forces, steps=7)


@pytest.mark.parametrize("added", [True, False])
def test_names_a_loss_that_was_not_added(added):
    def step(model, rows):
        loss = 0.0
        for prediction, target, function in zip(
            model(X[rows]), (ENERGY[rows], LABELS[rows]), (F.mse_loss, F.cross_entropy), strict=True
        ):
            loss = (loss if added else 0.0) + function(prediction, target)
        return loss

    finding = found(step, steps=60).get("unreached-parameters")
    assert (finding is None) is added
    assert added or "computes 1 loss (mse_loss in line" in finding.message
