"""Experiments that change how the weights are updated."""

from __future__ import annotations

from dataclasses import replace

from diagnostics.facts.experiments import MAKES_UP, ExperimentRun

from .experiment import Experiment, Setup

ADAM_RATE = 1e-3  # its default
EXTREME = 1e4  # times the script's rate: tried if the unchanged copy hardly moves


class Rate(Experiment):
    """The script's optimizer at another learning rate.

    Args:
        factor: times the script's.
    """

    breadth = 1

    def __init__(self, factor: float) -> None:
        self.factor = factor
        times = f"* {factor:,.10g}" if factor > 1 else f"/ {1 / factor:,.10g}"
        self.name = f"learning rate {times}"
        self.rule = "learning-rate-too-low" if factor > 1 else "learning-rate-too-high"

    def described(self, setup: Setup) -> ExperimentRun:
        """Describe the rate; one that is much higher may only make up for what shrinks the steps."""
        described = super().described(setup)
        return replace(described, breadth=MAKES_UP) if self.factor >= EXTREME else described

    def _rate(self, setup: Setup) -> float:
        return setup.rate * self.factor

    def _change(self, setup: Setup) -> None:
        setup.factor = self.factor

    def _phrase(self, setup: Setup) -> str:
        return f"at a learning rate of {self._rate(setup):.3g} instead of {setup.rate:.3g}"

    def _fix(self, setup: Setup) -> str:
        return rate_fix(setup, setup.optimizer, self._rate(setup))


class WithAdam(Experiment):
    """Adam at its default rate in place of the script's optimizer."""

    name, breadth = "Adam", 2

    def _objection(self, setup: Setup) -> str | None:
        return "the optimizer is Adam" if "adam" in setup.optimizer.lower() else None

    def _change(self, setup: Setup) -> None:
        setup.with_adam = True

    def _phrase(self, setup: Setup) -> str:
        return f"with Adam at {ADAM_RATE:g} instead of {setup.optimizer} at {setup.rate:.3g}"

    def _fix(self, setup: Setup) -> str:
        return rate_fix(setup, "Adam", ADAM_RATE)


class WithoutClipping(Experiment):
    """Gradients as they are."""

    name = "no clipping"

    def _objection(self, setup: Setup) -> str | None:
        return "gradients are not clipped" if setup.clip is None else None

    def _change(self, setup: Setup) -> None:
        setup.clip = None

    def _phrase(self, setup: Setup) -> str:
        return f"without clipping gradients to {setup.clip:.3g}"

    def _fix(self, setup: Setup) -> str:
        return "clip at a norm that only outliers exceed, or not at all"


class WithoutDecay(Experiment):
    """No weight decay."""

    name = "no weight decay"

    def _objection(self, setup: Setup) -> str | None:
        return None if setup.decays else "the weights are not decayed"

    def _change(self, setup: Setup) -> None:
        setup.decays = False

    def _phrase(self, setup: Setup) -> str:
        return "without weight decay"

    def _fix(self, setup: Setup) -> str:
        return f"{setup.optimizer}(..., weight_decay=0)  # 1e-4 to 1e-2 is usual"


class WithoutSchedule(Experiment):
    """The full learning rate in each step."""

    name = "no schedule"

    def _objection(self, setup: Setup) -> str | None:
        return None if setup.rates else "the learning rate is constant"

    def _change(self, setup: Setup) -> None:
        setup.rates = ()

    def _phrase(self, setup: Setup) -> str:
        return f"at a constant learning rate of {setup.rate:.3g}"

    def _fix(self, setup: Setup) -> str:
        return "remove the schedule, or let it decay only towards the end of the run"


def rate_fix(setup: Setup, optimizer: str, rate: float) -> str:
    """Return the line of code that sets optimizer and rate."""
    if setup.library == "keras":
        return f"optimizer=keras.optimizers.{optimizer}(learning_rate={rate:.3g})"
    if setup.library == "trainer":
        return f"TrainingArguments(..., learning_rate={rate:.3g})"
    return f"torch.optim.{optimizer}(model.parameters(), lr={rate:.3g})"
