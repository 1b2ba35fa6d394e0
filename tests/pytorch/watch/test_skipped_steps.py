"""Steps that a loss scaler leaves out, one after the other, and those with which it finds its scale."""

import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.collectors.pytorch.watch.optimizer_steps import SkippedSteps
from diagnostics.collectors.pytorch.watch.record.step_log import SKIPPED
from tests.pytorch.watched import batch


class Distance(nn.Module):
    """A norm of what is 0 for each example: its slope is infinite there, and nothing else is."""

    def __init__(self, broken):
        super().__init__()
        self.embed, self.head, self.broken = nn.Linear(8, 16), nn.Linear(17, 3), broken

    def forward(self, x):
        hidden = self.embed(x)
        apart = hidden - hidden.detach() if self.broken else hidden
        return self.head(torch.cat([hidden, apart.square().sum(1, keepdim=True).sqrt()], 1))


def train(
    steps,
    broken=lambda step: True,
    fused=False,
    accumulate=1,
    zero_first=True,
    init_scale=65536.0,
    clip=False,
    faults=(),
):
    """Return the findings of a run on the CPU that is watched."""
    torch.manual_seed(0)
    model = Distance(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale)
    with diagnostics.watch(model, optimizer) as watch:
        for step in range(steps):
            model.broken = broken(step)
            if zero_first:
                optimizer.zero_grad()
            for part in range(accumulate):
                inputs, labels = batch(step * accumulate + part)
                with torch.autocast("cpu", torch.float16):
                    loss = nn.functional.cross_entropy(model(inputs).float(), labels)
                scaler.scale(loss / accumulate).backward()
                watch.step(loss)
            if clip:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            if not zero_first:
                optimizer.zero_grad()
    report = watch.report()
    assert report.faults == faults
    return {finding.rule: finding for finding in report.findings}


class TestFound:
    @pytest.mark.parametrize("fused", [False, True], ids=["by the scaler", "by a fused optimizer"])
    def test_where_every_step_is_left_out(self, fused):
        said = train(60, fused=fused)["non-finite-gradients"].message
        assert (
            "the gradient of 2 of the 4 parameters (embed.* (2 parameters)) is NaN or infinite. Because of this, "
            "the loss scaler skipped" in said
        )
        assert "steps in a row." in said
        assert "first appears in the backward pass of the model itself (Distance), outside its layers." in said
        assert "Found by replaying that step on a copy" in said

    @pytest.mark.parametrize("fused", [False, True], ids=["by the scaler", "by a fused optimizer"])
    def test_from_a_later_step_on(self, fused):
        assert "non-finite-gradients" in train(160, broken=lambda step: step >= 70, fused=fused)

    def test_where_gradients_are_cleared_after_the_step(self):
        assert "non-finite-gradients" in train(60, zero_first=False)

    def test_where_they_are_clipped(self):
        assert "non-finite-gradients" in train(60, clip=True)

    def test_where_passes_are_accumulated(self):
        assert "non-finite-gradients" in train(60, accumulate=4)


def test_a_fault_of_the_look_is_a_line_in_the_report_and_no_exception_in_the_backward_pass(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(SkippedSteps, "_ends", broken)
    found = train(60, faults=("watching the backward passes ended: ZeroDivisionError: on purpose",))
    assert set(found) == {"unchanged-parameters"}  # the scaler makes no step: that is seen all the same


@pytest.mark.filterwarnings("error")
class TestSilent:
    @pytest.mark.parametrize("fused", [False, True], ids=["by the scaler", "by a fused optimizer"])
    @pytest.mark.parametrize("init_scale", [2.0**16, 2.0**32])
    def test_while_the_scaler_finds_its_scale(self, init_scale, fused):
        assert "non-finite-gradients" not in train(60, lambda step: False, fused, init_scale=init_scale)

    @pytest.mark.parametrize("fused", [False, True], ids=["by the scaler", "by a fused optimizer"])
    def test_while_every_other_step_is_made(self, fused):
        assert "non-finite-gradients" not in train(120, lambda step: step % 2 == 0, fused)

    @pytest.mark.parametrize("fused", [False, True], ids=["by the scaler", "by a fused optimizer"])
    def test_as_long_as_they_are_few(self, fused):
        assert "non-finite-gradients" not in train(80, lambda step: 20 <= step < 20 + SKIPPED, fused)

    def test_within_the_passes_of_one_step(self):
        said = train(1, accumulate=60)
        assert "non-finite-gradients" not in said
