"""An experiment: one thing that is changed in a copy of a run, and what that means for the script."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.experiments import ExperimentRun
from diagnostics.facts.loss_contracts import LossContract

from .rows import Rows


@dataclass(frozen=True)
class Reached:
    """What a copy reached.

    Attributes:
        losses: before each step, in the script's unit.
        held_out: the loss of the rows held out, after the last step.
    """

    losses: tuple[float, ...]
    held_out: float


@dataclass
class Setup(ABC):
    """What one run on a copy is made of: an experiment changes it before it runs. One is made for each run.

    Attributes:
        library: whose code a fix is written in: ``torch``, ``trainer`` or ``keras``.
        rows: that it trains on, and that are held out.
        contract: of the loss.
        optimizer: its class name.
        rate: the script's learning rate.
        factor: times all learning rates.
        with_adam: whether Adam takes the place of the script's optimizer.
        rates: the share of the full rate in each recorded step; empty if it is constant.
        clip: the norm that gradients are clipped to; None without.
        decays: whether the optimizer decays weights.
        target_scale: mean and standard deviation that targets are standardised with; None to leave them.
        aligned: whether the target gets the shape of the prediction.
        shapes: of prediction and target in the first batch.
    """

    library: str
    rows: Rows
    contract: LossContract
    optimizer: str
    rate: float
    factor: float = 1.0
    with_adam: bool = False
    rates: tuple[float, ...] = ()
    clip: float | None = None
    decays: bool = False
    target_scale: tuple[float, float] | None = None
    aligned: bool = False
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = field(default=((), ()))

    def run(self, steps: int, start: int = 0, stop: Callable[[], bool] = lambda: False) -> Reached:
        """Train; `start`: the first batch. A run that `stop` ends has fewer losses."""
        step, batches = self.begin(start), self.rows.batches
        losses: list[float] = []
        for number in range(steps):
            share = self.rates[number % len(self.rates)] if self.rates else 1.0
            losses.append(step(batches[(start + number) % len(batches)], share))
            if not math.isfinite(losses[-1]):
                return Reached(tuple(losses), math.nan)
            if stop():
                break
        return Reached(tuple(losses), self.on_held_out(self.loss))

    def on_held_out(self, loss: Callable[[Array], float]) -> float:
        """Return the mean loss of the rows held out, in batches as large as those trained on."""
        rows = self.rows.held_out
        size = int(np.median([len(batch) for batch in self.rows.batches]))
        parts = np.array_split(rows, max(1, len(rows) // max(1, size)))
        return float(np.average([loss(part) for part in parts], weights=[len(part) for part in parts]))

    @abstractmethod
    def begin(self, start: int) -> Callable[[Array, float], float]:
        """Make an optimizer, and return what makes a step.

        Args:
            start: the first batch, from which random numbers are seeded.

        Returns:
            A function of the rows of a batch and the share of the learning rate. It returns the loss before the
            step, in the script's unit, and makes no step where that is not finite.
        """

    @abstractmethod
    def loss(self, rows: Array) -> float:
        """Compute the loss of some rows, in the script's unit, after the latest step."""

    @abstractmethod
    def constant(self) -> float:
        """Return the loss of the best constant prediction for the rows held out; NaN if not known."""

    @abstractmethod
    def layers(self, kind: str) -> list[str]:
        """Name the layers of a kind.

        Args:
            kind: ``dropout``, ``normalisation``, ``idle`` (dropout and batch norm in evaluation mode), ``frozen``
                (with weights that are not trained), ``half`` (with weights in half precision), ``initialised``
                (that can draw their first weights again).
        """

    @abstractmethod
    def remove(self, kind: str) -> None:
        """Let the layers of a kind (``dropout``, ``normalisation``) return what they get."""

    @abstractmethod
    def set_training_mode(self) -> None:
        """Put all layers into training mode."""

    @abstractmethod
    def unfreeze(self) -> None:
        """Train all weights."""

    @abstractmethod
    def to_float32(self) -> None:
        """Compute in float32."""

    @abstractmethod
    def initialise(self) -> None:
        """Draw the first weights again, as the framework does by default."""

    @abstractmethod
    def last_activation(self) -> str | None:
        """Name the function that computes the prediction, if it is an activation."""

    @abstractmethod
    def remove_last_activation(self) -> None:
        """Let it return what it gets."""

    def measured_inputs(self) -> dict[str, Any]:
        """Return the inputs that hold measurements: floating-point numbers."""
        return {path: values for path, values in self.rows.inputs.items() if values.dtype.kind == "f"}


class Experiment(ABC):
    """One thing to change, with what must hold for it to make sense, and what to do if it helps.

    Attributes:
        name: of the experiment, in the evidence.
        rule: that names the cause if it helps; empty for none.
        breadth: see `ExperimentRun`.
    """

    name: str = ""
    rule: str = ""
    breadth: ClassVar[int] = 0

    def objection(self, setup: Setup) -> str | None:
        """Say why the experiment makes no sense for a run; None if it does."""
        return self._objection(setup)

    def described(self, setup: Setup) -> ExperimentRun:
        """Describe the change of a run that is not changed yet."""
        return ExperimentRun(
            self.name,
            self._phrase(setup),
            self._fix(setup),
            rule=self.rule,
            breadth=self.breadth,
            rate=self._rate(setup),
        )

    def change(self, setup: Setup) -> None:
        """Change the one thing."""
        self._change(setup)

    def _objection(self, setup: Setup) -> str | None:
        return None

    def _rate(self, setup: Setup) -> float | None:
        """Return the learning rate that it sets; None if it sets none."""
        return None

    @abstractmethod
    def _phrase(self, setup: Setup) -> str:
        """Say what is changed, as the beginning of a sentence."""

    @abstractmethod
    def _fix(self, setup: Setup) -> str:
        """Say what to change in the script."""

    @abstractmethod
    def _change(self, setup: Setup) -> None: ...


class Together(Experiment):
    """Two changes at once, where neither is enough.

    Args:
        first: whose fix comes first.
        second: the other.
    """

    breadth = 2

    def __init__(self, first: Experiment, second: Experiment) -> None:
        self._both = first, second
        self.name = f"{first.name}, {second.name}"

    def _objection(self, setup: Setup) -> str | None:
        return next((why for each in self._both if (why := each.objection(setup)) is not None), None)

    def _change(self, setup: Setup) -> None:
        for each in self._both:
            each.change(setup)

    def _phrase(self, setup: Setup) -> str:
        return " and ".join(each.described(setup).phrase for each in self._both)

    def _fix(self, setup: Setup) -> str:
        return "; ".join(each.described(setup).fix for each in self._both)
