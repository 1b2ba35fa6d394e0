import json

import numpy as np
import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.training import UnderflowFacts
from diagnostics.rules.numerics.half_precision_underflow import LEAST, HalfPrecisionUnderflow

RULE = HalfPrecisionUnderflow()


def underflow(shares, least=LEAST, zeros=0.1, steps=6):
    shares = np.tile(np.array(shares, float), (steps, 1))
    return UnderflowFacts(
        tuple(f"layers.{number}" for number in range(shares.shape[1])),
        np.arange(steps) * 20,
        np.full(shares.shape, least),
        shares,
        np.broadcast_to(zeros, shares.shape).astype(float),
    )


class TestFires:
    def test_on_gradients_that_crowd_at_the_least_number(self):
        finding = RULE.from_underflow(underflow([0.31, 0.42, 0.0], zeros=[0.15, 0.21, 1.0]))
        assert (finding.rule, finding.severity, finding.step) == ("half-precision-underflow", "warning", 0)
        assert finding.message == (
            "In 'layers.1', 42 % of the non-zero gradient values are exactly 5.96e-08, the smallest "
            "number of float16, and 21 % are 0, in 6 of 6 sampled steps. Smaller values were rounded to "
            "0. The same in 'layers.0'. The gradient of 1 layer is entirely 0."
        )
        assert finding.fix.startswith("scaler = torch.amp.GradScaler(...)")
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_gradients_that_were_clipped_since(self):
        assert RULE.from_underflow(underflow([0.4], least=LEAST / 9)) is not None


class TestSilent:
    def test_on_gradients_far_from_it(self):
        assert RULE.from_underflow(underflow([0.05, 0.0])) is None

    def test_on_equal_numbers_of_another_size(self):
        assert RULE.from_underflow(underflow([1.0], least=1 / 1024)) is None

    def test_on_those_that_a_scaler_has_brought_back_to_their_size(self):
        assert RULE.from_underflow(underflow([0.4], least=LEAST / 65536)) is None

    def test_on_a_few_steps_of_many(self):
        facts = underflow([0.4])
        facts.at_least[:3] = 0.0
        assert RULE.from_underflow(facts) is None


def test_not_applicable_before_three_steps_were_looked_at():
    with pytest.raises(NotApplicable, match="needs 3 sampled steps in float16"):
        RULE.from_underflow(underflow([0.4], steps=2))


def train(dtype=torch.float16, weight=1e-4, scaler=None, clip=None, half=False, sparse=False):
    """Train with a loss that counts little, as one of several does."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    first = [nn.EmbeddingBag(500, 32)] if sparse else [nn.Linear(32, 32)]
    model = nn.Sequential(*first, nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model = model.half() if half else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer, every=4) as watch:
        for step in range(20):
            generator = torch.Generator().manual_seed(step)
            inputs = torch.randn(64, 32, generator=generator)
            labels = inputs[:, :10].argmax(1)
            inputs = torch.randint(500, (64, 3), generator=generator) if sparse else inputs
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype, enabled=dtype is not None and not half):
                output = model(inputs.half() if half else inputs)
            loss = nn.functional.cross_entropy(output.float(), labels) * weight
            if scaler is None:
                loss.backward()
            else:
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
            watch.step(loss)
    report = watch.report()
    assert report.faults == ()
    return report


def found(**options):
    return "half-precision-underflow" in [finding.rule for finding in train(**options).findings]


class TestOnRealModels:
    @pytest.mark.parametrize("half", [False, True])
    def test_a_small_loss_without_a_scaler_is_named(self, half):
        assert found(half=half)

    def test_clipping_does_not_hide_it(self):
        assert found(clip=1e-5)

    def test_with_a_scaler_it_is_not_named(self):
        report = train(scaler=torch.amp.GradScaler("cpu"))
        assert report.history.steps.total_steps == 20
        assert "half-precision-underflow" not in [finding.rule for finding in report.findings]
        assert "half-precision-underflow" not in report.not_applicable

    @pytest.mark.parametrize("dtype", [torch.bfloat16, None])
    def test_neither_is_it_in_another_dtype(self, dtype):
        report = train(dtype)
        assert "half-precision-underflow" in report.not_applicable

    @pytest.mark.parametrize("sparse", [False, True])
    def test_neither_is_a_loss_of_usual_size(self, sparse):
        assert not found(weight=1.0, sparse=sparse)
