"""Loops that really go wrong in the course of a run, or that only look like it, and what `watch` says of them."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import diagnostics

FEATURES, CLASSES = 16, 4


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def points(step, rows=32):
    """Return features (rows, 16) and labels (rows,): one centre a class, and noise around it."""
    centres = 1.5 * torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(step)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    return centres[labels] + torch.randn(rows, FEATURES, generator=generator), labels


def network(activation=nn.ReLU, hidden=2):
    layers = [nn.Linear(FEATURES, 64), activation()]
    for _ in range(hidden):
        layers += [nn.Linear(64, 64), activation()]
    return nn.Sequential(*layers, nn.Linear(64, CLASSES))


def found(model, optimizer, *, steps=400, data=points, loss_fn=cross_entropy, every_100=None):
    """Train, and return the findings by name."""
    with diagnostics.watch(model, optimizer) as watch:
        for step in range(steps):
            inputs, labels = data(step)
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss)
            if every_100 is not None and step % 100 == 99:
                every_100(model, watch)
    report = watch.report()
    assert report.faults == ()
    return {finding.rule: finding for finding in report.findings}


class TestLearningRate:
    def test_so_high_that_nothing_is_learned(self):
        model = network(nn.Tanh, hidden=6)
        findings = found(model, torch.optim.Adam(model.parameters(), lr=1.0))
        assert findings["learning-rate-too-high"].evidence["course"] == "diverged"
        assert not {"loss-plateau", "loss-divergence", "constant-predictions"} & set(findings)

    def test_so_high_that_the_loss_soars_until_it_is_nan(self):
        torch.manual_seed(1)
        model = nn.Linear(FEATURES, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=3.0)
        findings = found(model, optimizer, loss_fn=lambda output, labels: mse_loss(output[:, 0], labels.float()))
        assert findings["learning-rate-too-high"].evidence["course"] == "diverged"

    def test_so_low_that_nothing_moves(self):
        model = network()
        findings = found(model, torch.optim.SGD(model.parameters(), lr=1e-7))
        assert {name: finding.severity for name, finding in findings.items()} == {
            "learning-rate-too-low": "warning"
        }

    def test_the_default_one_is_named(self):
        model = network(nn.Tanh, hidden=6)

        class Eager(torch.optim.Adam):
            def __init__(self, params, lr=1.0):
                super().__init__(params, lr=lr)

        assert "default-learning-rate" in found(model, Eager(model.parameters()))

    @pytest.mark.parametrize("rate", [1e-4, 1e-3, 1e-2, 5e-2])
    def test_that_works_is_silent(self, rate):
        model = network()
        assert found(model, torch.optim.Adam(model.parameters(), lr=rate)) == {}


class TestPlateau:
    def test_of_labels_that_have_nothing_to_do_with_the_inputs(self):
        model = network()
        generator = torch.Generator().manual_seed(5)
        findings = found(
            model,
            torch.optim.Adam(model.parameters(), lr=1e-3),
            steps=600,
            data=lambda step: (points(step)[0], torch.randint(CLASSES, (32,), generator=generator)),
        )
        assert set(findings) == {"loss-plateau"}

    def test_a_judge_that_can_no_longer_tell_is_silent(self):
        # Half of what it sees is made to look more and more like the other half, as in adversarial training.
        model = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
        generator = torch.Generator().manual_seed(5)

        def pairs(step):
            apart = 3.0 * max(0.0, 1 - step / 300)
            points = torch.randn(64, 2, generator=generator)
            points[:32] += apart
            return points, torch.arange(64) < 32

        findings = found(
            model,
            torch.optim.Adam(model.parameters(), lr=1e-2),
            steps=1000,
            data=pairs,
            loss_fn=lambda output, labels: nn.functional.binary_cross_entropy_with_logits(
                output[:, 0], labels.float()
            ),
        )
        assert {rule: finding.severity for rule, finding in findings.items()} == {"not-learning": "note"}


class TestData:
    def test_that_comes_sorted_by_label(self):
        def rows(step):
            inputs, labels = points(step, rows=512)
            of_class = labels == step // 20 % CLASSES
            return inputs[of_class][:32], labels[of_class][:32]

        model = network()
        findings = found(model, torch.optim.Adam(model.parameters(), lr=1e-3), data=rows)
        assert set(findings) == {"sorted-by-label"}

    def test_that_is_one_batch_is_a_note(self):
        batch = points(0)
        model = network()
        findings = found(model, torch.optim.Adam(model.parameters(), lr=1e-3), data=lambda _: batch)
        assert {name: finding.severity for name, finding in findings.items()} == {"repeated-batch": "note"}


class TestTwoNetworks:
    def test_a_judge_that_is_watched_alone_is_silent(self):
        maker = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
        judge = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
        making, judging = (torch.optim.Adam(part.parameters(), lr=1e-3) for part in (maker, judge))
        one, zero = torch.ones(32), torch.zeros(32)

        def judged(points, truth):
            return nn.functional.binary_cross_entropy_with_logits(judge(points)[:, 0], truth)

        with diagnostics.watch(judge, judging) as watch:
            for _ in range(400):
                judging.zero_grad()
                loss = judged(2 + torch.randn(32, 2), one) + judged(maker(torch.randn(32, 4)).detach(), zero)
                loss.backward()
                judging.step()
                watch.step(loss)
                making.zero_grad()
                judged(maker(torch.randn(32, 4)), one).backward()
                making.step()
        assert watch.report().findings == ()


class Dropping(nn.Module):
    def __init__(self, norm):
        super().__init__()
        middle = nn.BatchNorm1d(64) if norm else nn.Identity()
        self.body = nn.Sequential(nn.Linear(FEATURES, 64), middle, nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(64, CLASSES)

    def forward(self, inputs):
        return self.head(self.body(inputs))


@torch.no_grad()
def evaluate(model, _watch):
    for part in range(4):
        model(points(1_000_000 + part)[0])


class TestModes:
    @pytest.mark.parametrize("norm", [True, False])
    def test_an_evaluation_in_training_mode(self, norm):
        model = Dropping(norm)
        findings = found(model, torch.optim.Adam(model.parameters(), lr=1e-3), every_100=evaluate)
        assert {name: finding.severity for name, finding in findings.items()} == {
            "train-mode-evaluation": "warning"
        }

    def test_predictions_averaged_over_dropout_are_a_note(self):
        @torch.no_grad()
        def average(model, _watch):
            for _ in range(4):
                model(points(1_000_000)[0])

        model = Dropping(norm=False)
        findings = found(model, torch.optim.Adam(model.parameters(), lr=1e-3), every_100=average)
        assert {name: finding.severity for name, finding in findings.items()} == {"train-mode-evaluation": "note"}

    def test_an_evaluation_that_leaves_its_mode_behind(self):
        def forgetful(model, watch):
            evaluate(model.eval(), watch)

        model = Dropping(norm=True)
        findings = found(model, torch.optim.Adam(model.parameters(), lr=1e-3), every_100=forgetful)
        assert set(findings) == {"eval-mode-training"}
        assert findings["eval-mode-training"].step == 100

    def test_an_evaluation_that_brings_the_mode_back_is_silent(self):
        def careful(model, watch):
            evaluate(model.eval(), watch)
            model.train()

        model = Dropping(norm=True)
        assert found(model, torch.optim.Adam(model.parameters(), lr=1e-3), every_100=careful) == {}


class TestOverfitting:
    def test_of_a_few_noisy_examples(self):
        inputs, labels = points(0, rows=256)
        generator = torch.Generator().manual_seed(3)
        wrong = torch.rand(256, generator=generator) < 0.4
        labels = torch.where(wrong, torch.randint(CLASSES, (256,), generator=generator), labels)
        held_out = points(1, rows=512)

        def rows(step):
            start = step * 32 % 256
            return inputs[start : start + 32], labels[start : start + 32]

        @torch.no_grad()
        def hand_over(model, watch):
            watch.evaluated(cross_entropy(model(held_out[0]), held_out[1]).item())

        model = network()
        findings = found(
            model, torch.optim.Adam(model.parameters(), lr=1e-3), steps=1200, data=rows, every_100=hand_over
        )
        assert set(findings) == {"overfitting"}
        evidence = findings["overfitting"].evidence
        assert evidence["last_loss"] > 1.3 * evidence["best_loss"]
        assert np.isfinite(evidence["training_loss_at_end"])
