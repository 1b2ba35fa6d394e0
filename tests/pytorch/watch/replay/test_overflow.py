"""Numbers too large for half precision, on real models that make them."""

import numpy as np
import pytest
import torch
from torch import nn

import diagnostics
from tests.pytorch.watched import batch, run


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Gated(nn.Module):
    """The feed-forward block of T5 v1.1, whose product overflows; its weights double with `grow`."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.gate, self.up = nn.Linear(8, 16, bias=False), nn.Linear(8, 16, bias=False)
        self.act = nn.GELU()
        self.down = nn.Linear(16, 8, bias=False)

    def forward(self, x):
        normed = self.norm(x)
        return x + self.down(self.act(self.gate(normed)) * self.up(normed))

    def grow(self):
        with torch.no_grad():
            self.gate.weight *= 2
            self.up.weight *= 2
            self.down.weight /= 4


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Gated(), Gated(), Gated()])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class UnderAutocast(Network):
    def forward(self, x):
        with torch.autocast("cpu", torch.float16):
            return super().forward(x)


def products(model, step, half):
    """Return the largest product within the second block at a step, computed beside the watcher."""
    with torch.no_grad(), torch.autocast("cpu", torch.float16, enabled=not half):
        x = model.blocks[0](batch(step)[0].half() if half else batch(step)[0])
        block = model.blocks[1]
        normed = block.norm(x)
        return float((block.act(block.gate(normed)) * block.up(normed)).abs().max())


@pytest.mark.parametrize("half", [True, False], ids=["half", "autocast"])
class TestOverflow:
    def test_names_step_and_block_of_a_product_that_overflows(self, half):
        model = Network().half() if half else UnderAutocast()
        seen = []

        def grow(step, model, optimizer):
            model.blocks[1].grow()
            seen.append(products(model, step, half))

        origin = run(
            model, 20, every=4, change=grow, optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
            data=lambda step: (batch(step)[0].half() if half else batch(step)[0], batch(step)[1]),
            loss_of=lambda output: output.float().logsumexp(1).mean(),
        ).origin  # fmt: skip
        broken = [np.isfinite(value) for value in seen].index(False)
        assert 3 < broken < 15
        assert (origin.step, origin.kind, origin.module, origin.module_kind) == (
            broken, "forward", "blocks.1", "Gated",
        )  # fmt: skip
        over = origin.overflow
        assert (over.module, over.side, over.dtype, over.limit) == ("blocks.1.down", "input", "float16", 65504.0)
        assert 65504 < over.highest < 8 * 65504
        assert over.highest > seen[broken - 1]

    def test_a_division_by_zero_is_no_overflow(self, half):
        class Divided(nn.Module):
            def forward(self, x):
                return x / (x - x)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.divided = nn.Linear(8, 3), Divided()

            def forward(self, x):
                with torch.autocast("cpu", torch.float16, enabled=not half):
                    return self.divided(self.first(x))

        origin = run(
            Model().half() if half else Model(), 3,
            data=lambda step: (batch(step)[0].half() if half else batch(step)[0], batch(step)[1]),
            loss_of=lambda output: output.float().sum(),
        ).origin  # fmt: skip
        assert (origin.step, origin.kind, origin.module, origin.overflow) == (0, "forward", "divided", None)


def report_of(model, change=None, steps=20):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with diagnostics.watch(model, optimizer, every=4) as watch:
        for step in range(steps):
            inputs, labels = batch(step)
            if change is not None:
                change(model)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs).float(), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert watch.report().faults == ()
    return watch.report()


class TestReport:
    def test_one_cause_gives_one_finding(self):
        report = report_of(UnderAutocast(), lambda model: model.blocks[1].grow())
        errors = [finding.rule for finding in report.findings if finding.severity == "error"]
        assert errors[0] == "half-precision-overflow"
        assert not {"non-finite-activations", "non-finite-loss", "non-finite-gradients"} & set(errors)

    def test_numbers_close_to_the_limit_are_a_warning_while_all_is_finite(self):
        def grow(model):
            with torch.no_grad():  # 40,000 at the output of `gate`, and nothing at the other end
                largest = max(model.blocks[1].gate.weight.abs().max(), 1e-3)
                model.blocks[1].gate.weight.mul_(9000 / largest)
                model.blocks[1].up.weight.zero_()

        report = report_of(UnderAutocast(), grow)
        found = [finding for finding in report.findings if finding.rule == "half-precision-overflow"]
        assert [finding.severity for finding in found] == ["warning"]
        assert next(iter(found[0].evidence["highest"])) == "blocks.1.gate"

    def test_a_healthy_one_is_left_alone(self):
        report = report_of(UnderAutocast())
        assert "half-precision-overflow" not in [finding.rule for finding in report.findings]
        assert "half-precision-overflow" not in report.not_applicable

    @pytest.mark.parametrize("fill", [-torch.inf, torch.finfo(torch.float16).min], ids=["inf", "least number"])
    def test_so_is_a_mask(self, fill):
        class Mask(nn.Module):
            def forward(self, x):
                return x.masked_fill(torch.arange(8) > 3, fill)

        class Attention(Network):
            def __init__(self):
                super().__init__()
                self.query, self.mask = nn.Linear(8, 8), Mask()

            def forward(self, x):
                with torch.autocast("cpu", torch.float16):
                    return self.head(x * self.mask(self.query(x)).softmax(-1))

        report = report_of(Attention())
        assert "half-precision-overflow" not in [finding.rule for finding in report.findings]
