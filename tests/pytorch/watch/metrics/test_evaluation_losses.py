import pytest
import torch
from torch import nn
from torch.nn import functional as F

import diagnostics
from diagnostics.collectors.pytorch.watch.metrics.outputs import evaluation_losses
from diagnostics.rules.evaluation.overfitting import Overfitting
from tests.support.courses import judge

X, Y = torch.randn(24, 4), torch.randint(3, (24,))
HELD_OUT = X + 1.0


class Loop:
    def __init__(self, out=3):
        torch.manual_seed(0)
        self.model = nn.Linear(4, out)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.watch = diagnostics.watch(self.model, self.optimizer)

    def train(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(X), Y)
            loss.backward()
            self.optimizer.step()
            self.watch.step(loss)

    def evaluate(self, reduction="mean", parts=(10, 14)):
        with torch.no_grad():
            for rows, labels in zip(HELD_OUT.split(parts), Y.split(parts), strict=True):
                F.cross_entropy(self.model(rows), labels, reduction=reduction)

    def true_loss(self):
        with torch.no_grad():
            return float(F.cross_entropy(self.model(HELD_OUT), Y))

    def evaluations(self):
        return self.watch._probe.history().evaluations


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_averages_the_terms_of_each_evaluation(reduction):
    loop, expected = Loop(), []
    for _ in range(3):
        loop.train(5)
        expected.append(loop.true_loss())
        loop.evaluate(reduction)
    found = loop.evaluations()
    assert found.steps.tolist() == [4, 9, 14]
    assert found.losses == pytest.approx(expected, rel=1e-5)


def test_hears_a_loss_that_the_model_computes():
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, rows, labels):
            logits = self.layer(rows)
            return logits, F.cross_entropy(logits, labels)

    model = WithLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = diagnostics.watch(model, optimizer)
    for _ in range(2):
        loss = model(X, Y)[1]
        loss.backward()
        optimizer.step()
        watch.step(loss)
        with torch.no_grad():
            expected = float(model(HELD_OUT, Y)[1])
    found = watch._probe.history().evaluations
    assert (found.steps.tolist(), found.losses[-1]) == ([0, 1], pytest.approx(expected))


def test_prefers_the_losses_that_the_loop_passes():
    loop = Loop()
    loop.train(5)
    loop.evaluate()
    loop.watch.evaluated(7.0)
    assert loop.evaluations().losses.tolist() == [7.0]


def test_ignores_losses_without_a_pass_of_the_model():
    loop = Loop()
    loop.train(5)
    with torch.no_grad():
        F.cross_entropy(torch.zeros(24, 3), Y)
    assert loop.evaluations() is None


def test_keeps_a_bounded_number_of_evaluations(monkeypatch):
    monkeypatch.setattr(evaluation_losses, "EVALUATIONS", 8)
    monkeypatch.setattr(evaluation_losses, "TOGETHER", 1)
    loop = Loop()
    for _ in range(40):
        loop.train(1)
        loop.evaluate()
    found = loop.evaluations()
    assert 4 <= len(found.steps) <= 8
    assert found.steps.max() >= 32


def test_names_the_steps_at_which_the_script_saved_the_weights():
    loop = Loop()
    for number in range(3):
        loop.train(5)
        loop.evaluate()
        if number == 1:
            loop.model.state_dict()
    assert loop.evaluations().saved_after == {9}


@pytest.mark.parametrize(("saves", "severity"), [(False, "warning"), (True, "note")])
def test_a_loop_overfits(saves, severity):
    torch.manual_seed(0)
    rows, noise = torch.randn(64, 20), torch.randint(2, (64,))
    model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch = diagnostics.watch(model, optimizer)
    for epoch in range(20):
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows[:32]), noise[:32])
            loss.backward()
            optimizer.step()
            watch.step(loss)
        with torch.no_grad():
            F.cross_entropy(model(rows[32:]), noise[32:])
        if saves and epoch == 0:
            best = {name: one.clone() for name, one in model.state_dict().items()}
            assert best
    history = watch._probe.history()
    finding = judge(Overfitting().from_history, history.evaluations, history.losses)
    assert (finding.rule, finding.severity) == ("overfitting", severity)
