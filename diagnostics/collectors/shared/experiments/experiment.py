"""An experiment: one thing that is changed in a copy of a run, whose rows are taken apart and partly held out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.experiments import ExperimentRun
from diagnostics.facts.loss_contracts import LossContract

HELD_OUT = 0.25  # of the rows
FEWEST = 24  # rows held out: a loss of fewer may be low by chance
MOST_HELD_OUT = 1024
TINY = 1e-12  # a share of a class, of which the logarithm is taken


@dataclass(frozen=True)
class Rows:
    """The rows of recorded batches, each once.

    Attributes:
        inputs: by path, arrays (n, ...).
        target: (n, ...).
        batches: integers (k,) each, the rows of a batch that are trained on.
        held_out: integers (m,), the rows that are not.
        first: integers (k,), all rows of the first batch, in its order.
    """

    inputs: Mapping[str, Array]
    target: Array
    batches: tuple[Array, ...]
    held_out: Array
    first: Array

    @property
    def trained(self) -> Array:
        """The rows that are trained on, rising."""
        return np.unique(np.concatenate(self.batches))

    def shuffled(self) -> Rows:
        """Deal the trained rows out to batches of the same sizes, at random."""
        generator, there = np.random.default_rng(0), np.concatenate(self.batches)
        dealt = generator.permutation(there)
        ends = np.cumsum([len(batch) for batch in self.batches])
        return replace(self, batches=tuple(np.split(dealt, ends[:-1])))


def rows_of(batches: Sequence[tuple[Mapping[str, Array], Array]]) -> Rows | str:
    """Take batches apart, or return why that cannot be done.

    Args:
        batches: inputs by path, each (n, ...), and the target (n, ...). `n` may differ from batch to batch.
    """
    if not batches:
        return "no batch was kept"
    paths = sorted(batches[0][0])
    if not paths or any(sorted(inputs) != paths for inputs, _ in batches):
        return "its batches differ in their inputs"
    number: dict[bytes, int] = {}
    kept: list[tuple[int, int]] = []  # batch and row of each row's first time
    of_batches: list[Array] = []
    for which, (inputs, target) in enumerate(batches):
        parts = [np.ascontiguousarray(inputs[path]) for path in paths] + [np.ascontiguousarray(target)]
        if any(part.ndim < 1 or len(part) != len(target) for part in parts):
            return "an input has no row for each target"
        if any(
            part.shape[1:] != first.shape[1:] for part, first in zip(parts, _first(batches, paths), strict=True)
        ):
            return "the rows of its batches differ in their shapes"
        rows = []
        for row in range(len(target)):
            key = b"".join(part[row].tobytes() for part in parts)
            if key not in number:
                number[key] = len(kept)
                kept.append((which, row))
            rows.append(number[key])
        of_batches.append(np.array(rows))
    held_out = np.random.default_rng(0).permutation(len(kept))[: min(int(HELD_OUT * len(kept)), MOST_HELD_OUT)]
    if len(held_out) < FEWEST:
        return f"{len(kept)} different rows are too few to hold some out"
    return Rows(
        inputs={path: np.stack([batches[which][0][path][row] for which, row in kept]) for path in paths},
        target=np.stack([batches[which][1][row] for which, row in kept]),
        batches=tuple(rest for rows in of_batches if len(rest := rows[~np.isin(rows, held_out)])),
        held_out=np.sort(held_out),
        first=of_batches[0],
    )


def _first(batches: Sequence[tuple[Mapping[str, Array], Array]], paths: list[str]) -> list[Array]:
    inputs, target = batches[0]
    return [*(inputs[path] for path in paths), target]


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


Text = str | Callable[[Setup], str]


@dataclass(frozen=True)
class Experiment:
    """One thing to change, with what must hold for it to make sense, and what to do if it helps.

    Attributes:
        name: of the experiment, in the evidence.
        objection: says why the experiment makes no sense for a run; None if it does.
        change: changes the one thing.
        phrase: what is changed, as the beginning of a sentence, for a run that is not changed yet.
        fix: what to change in the script, likewise.
        rule: that names the cause if it helps; empty for none.
        breadth: see `ExperimentRun`.
        rate: the learning rate that it sets, likewise; None if it sets none.
    """

    name: str
    objection: Callable[[Setup], str | None]
    change: Callable[[Setup], None]
    phrase: Text
    fix: Text
    rule: str = ""
    breadth: int = 0
    rate: Callable[[Setup], float] | None = None

    def described(self, setup: Setup) -> ExperimentRun:
        """Describe the change of a run that is not changed yet."""
        phrase, fix = (text if isinstance(text, str) else text(setup) for text in (self.phrase, self.fix))
        rate = None if self.rate is None else self.rate(setup)
        return ExperimentRun(self.name, phrase, fix, rule=self.rule, breadth=self.breadth, rate=rate)


def together(first: Experiment, second: Experiment) -> Experiment:
    """Make two changes at once, where neither is enough; the fix of the first comes first."""

    def change(setup: Setup) -> None:
        first.change(setup)
        second.change(setup)

    def joined(part: str, by: str) -> Callable[[Setup], str]:
        return lambda setup: by.join(getattr(each.described(setup), part) for each in (first, second))

    return Experiment(
        f"{first.name}, {second.name}",
        lambda setup: next((why for each in (first, second) if (why := each.objection(setup)) is not None), None),
        change,
        joined("phrase", " and "),
        joined("fix", "; "),
        breadth=2,
    )


def constant_answers(
    contract: LossContract,
    target: Array,
    others: tuple[int, ...],
    ignored: int | None = None,
    weight: Array | None = None,
) -> list[Array]:
    """Return the constant predictions of which one is the best for some targets; empty if that is not known.

    Args:
        contract: of the loss.
        target: (n, ...).
        others: the lengths of a prediction's axes after the first.
        ignored: the class that does not count.
        weight: float (classes,), of each class; None if all weigh the same.
    """
    if contract.targets == "classes" and target.dtype.kind in "biu":
        if not others:
            return []
        axis = 0 if contract.class_axis == 1 else len(others) - 1
        kept = target[target != ignored].astype(np.int64)
        if not kept.size or int(kept.min()) < 0 or int(kept.max()) >= others[axis]:
            return []
        counts = np.bincount(kept, minlength=others[axis]).astype(np.float64)
        counts = counts if weight is None else counts * weight
        place = tuple(-1 if number == axis else 1 for number in range(len(others)))
        return [_as_read(contract, counts / counts.sum()).reshape(1, *place)]
    if int(np.prod(target.shape[1:])) != int(np.prod(others)):
        return []
    values = target.astype(np.float64).reshape(len(target), *others)
    mean = values.mean(axis=0, keepdims=True)
    if contract.kind == "cross_entropy":
        return [_as_read(contract, mean)]
    if contract.kind == "binary_cross_entropy":
        share = np.clip(mean, TINY, 1 - TINY)
        return [np.log(share / (1 - share)) if contract.reads == "logits" else share]
    return [mean, np.quantile(values, 0.5, axis=0, keepdims=True)] if contract.targets == "numbers" else []


def _as_read(contract: LossContract, shares: Array) -> Array:
    return shares if contract.reads == "probabilities" else np.log(np.maximum(shares, TINY))
