"""Recovers the targets of sampled steps from the gradient of the output, and keeps some rows of them.

Of a pass at most `MAX_NUMBERS` numbers are copied and `ROWS` rows of inputs and targets kept; `MAX_BYTES` bytes in
all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from diagnostics.collectors.pytorch.batch import certain_prediction
from diagnostics.collectors.pytorch.discover.loss_calls import OF_NUMBERS, evaluation_calls
from diagnostics.collectors.pytorch.watch.metrics.input_samples import InputSamples
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import (
    TrainingProbe,
    WatchedModel,
    are_maximized,
    last_rows,
)
from diagnostics.collectors.shared.learnability import numbered_fit, order_fit, simple_fit
from diagnostics.collectors.shared.repeated_rows import RowMemory
from diagnostics.collectors.shared.target_recovery import (
    FORMULAS,
    Recovered,
    leaves_out,
    recovered,
    recovered_classes,
)
from diagnostics.collectors.shared.target_rows import (
    are_standardised,
    blank_rows,
    copied_target,
    only_class,
    only_target,
    sentinel,
)
from diagnostics.facts.array import Array
from diagnostics.facts.course import NegatedLoss, NumberedFit, OrderFit, RowLedger, SimpleFit, TargetHistory
from diagnostics.facts.inputs import InputFacts, TargetSides
from diagnostics.facts.training import LossHistory
from diagnostics.taps.torch import on_gradient

from .pass_inputs import ROWS, are_whole, features, is_plain, last_step

MAX_NUMBERS = 2**15  # numbers of an output; larger ones are not looked at
PASSES = 24  # kept; of more every second is dropped, and only every second taken from then on
MAX_BYTES = 8 * 2**20  # bytes of all that is kept; likewise
REL_TOLERANCE = 2e-3  # relative: a formula's value and the loss that the script differentiated
MIN_AGREEING = 0.9  # of the passes must agree
MIN_PASSES = 4  # passes
EXAMPLES = 100  # in these passes together, to know the mean of the targets
DRIFT = 0.25  # of the variance: how far, squared, the mean may go from one half of the run to the other
ROUNDING = 1e-6  # of the shares of classes: targets that are all 0 come out of a gradient as 1e-8, then as 1e-10
FRACTIONS = 0.5  # of the numbers of a row; fewer are categories, or mostly zeros
TOKENS = 8  # in a row of ids
EVALUATED = 32  # passes of evaluations whose targets are kept, `KEPT` numbers of each
KEPT = 1024
TARGET_DIGITS = 3  # of a target: it comes out of a gradient, with rounding
ENOUGH = 0.5  # of it: below, the tokens alone were enough, and their order is not looked at


@dataclass
class _Pass:
    """A pass on its device: what the model gave for which inputs, and the gradient that came back."""

    step: int
    output: Tensor
    of_classes: bool
    inputs: Tensor | None
    whole: bool
    last_step: int | None
    start: int
    stride: int
    gradient: Tensor | None = None


@dataclass(frozen=True)
class _Moments:
    """Of one formula: its loss, the mean (outputs,) and mean square of the targets, and some rows of them."""

    loss: float
    mean: Array
    square: float
    rows: Array

    @property
    def variance(self) -> float:
        return self.square - float(np.square(self.mean).mean())


@dataclass(frozen=True)
class _Seen:
    """A pass on the host; what the formulas make of it is computed when the run is over.

    Attributes:
        whole: whether the inputs that are kept are all that the model got of these rows.
        last_step: see `copied_target`.
    """

    step: int
    output: Array
    gradient: Array
    of_classes: bool
    inputs: Array | None
    whole: bool
    last_step: int | None
    chosen: slice

    @property
    def nbytes(self) -> int:
        return self.output.nbytes + self.gradient.nbytes + (0 if self.inputs is None else self.inputs.nbytes)

    @property
    def examples(self) -> int:
        return len(self.output)

    def readings(self, sign: float = 1.0) -> dict[str, _Moments]:
        """Return what each formula makes of the pass; rows of targets only where each belongs to one of inputs.

        Args:
            sign: of the formula in the loss: -1 where its negative was differentiated.
        """
        output, gradient = self.output.astype(np.float64), sign * self.gradient.astype(np.float64)
        flat = output.reshape(len(output), -1)
        by_row = recovered(flat, gradient.reshape(flat.shape), self.of_classes)
        found = {name: _moments(one, self.chosen) for name, one in by_row.items()}
        if output.ndim > 2 or (output.ndim == 2 and self.of_classes and leaves_out(output, gradient)):
            found |= {name: _moments(one) for name, one in recovered_classes(output, gradient).items()}
        return found


def _moments(found: Recovered, chosen: slice = slice(0)) -> _Moments:
    targets = found.targets
    return _Moments(found.loss, targets.mean(axis=0), float(np.square(targets).mean()), targets[chosen][:ROWS])


class Targets(TrainingProbe):
    """Listens to the gradient of the output at sampled steps; copies stay on the device until they are read.

    Attributes:
        repeated: what targets the same rows had in several of these steps; known once `history` was called.
    """

    repeated: RowLedger | None = None
    _of_training: Array | None = None  # (rows, outputs), where the loss is the mean squared error

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._asked: tuple[int, int] | None = None  # address and size of the latest output of an evaluation
        self._heard: list[Tensor] = []
        self._pending: list[_Pass] = []
        self._seen: list[_Seen] = []
        self._every = 1
        self._count = 0

    def on_pass_end(self, step: int, output: Any, inputs: Any) -> None:
        """Record a pass of training, and the gradient of its output, if that is one tensor."""
        output = certain_prediction(output)
        if not is_plain(output) or not output.is_floating_point() or not output.requires_grad:
            return
        self._count += 1
        if not output.ndim or not 0 < output.numel() <= MAX_NUMBERS or (self._count - 1) % self._every:
            return
        rows = len(output)
        stride = max(1, rows // ROWS)
        start = self._count % stride  # other rows each time, where all passes have the same
        seen = _Pass(step, output.detach().clone(), output.ndim == 2, None, False, None, start, stride)
        seen.whole = are_whole(inputs, rows)
        seen.inputs = features(inputs, rows, slice(start, None, stride))
        seen.last_step = last_step(inputs, rows, seen.inputs)

        pending = self._pending  # the graph may outlive the training, and is not to hold on to that

        def came(gradient: Tensor) -> None:
            if seen.gradient is None:
                seen.gradient = gradient.detach().clone()
                pending.append(seen)

        on_gradient(output, came)

    def on_evaluation_end(self, step: int, output: Any) -> None:
        """Wait for the loss that compares the output of a pass without gradients with its targets."""
        self._asked = None
        if step and len(self._heard) < EVALUATED and is_plain(output) and output.numel():
            self._asked = output.data_ptr(), output.numel()
            evaluation_calls.join(self._hear, OF_NUMBERS)

    def on_training_again(self) -> None:
        """Hear no more losses of an evaluation."""
        self._asked = None
        evaluation_calls.leave(self._hear)

    def _hear(self, prediction: Tensor, target: Tensor) -> None:
        """Take the targets that a loss compares with the latest output itself, not with what was made of it."""
        if self._asked == (prediction.data_ptr(), prediction.numel()) and target.numel() == prediction.numel():
            self._asked = None
            values = target.detach().reshape(len(target) if target.ndim > 1 else target.numel(), -1)
            self._heard.append(values[:: max(1, -(-values.numel() // KEPT))].float().clone())

    def sides(self, inputs: InputFacts | None) -> TargetSides | None:
        """Return the targets of training and of evaluations, both of which were compared with the output itself.

        Args:
            inputs: of both sides, if known.

        Returns:
            None where either is not known.
        """
        heard = [np.array(part) for part in to_host(dict(enumerate(self._heard))).values()]
        if self._of_training is None or len({part.shape[1:] for part in heard}) != 1:
            return None
        evaluation = np.concatenate(heard).astype(np.float64)
        if evaluation.shape[1:] != self._of_training.shape[1:]:
            return None
        return TargetSides(self._of_training, evaluation, inputs)

    def on_read(self, step: int) -> None:
        """Bring the copies to the host."""
        pending = taken(self._pending)
        parts = [part for one in pending for part in (one.output, one.gradient, one.inputs)]
        there = {number: part for number, part in enumerate(parts) if part is not None}
        host = to_host(there)
        for number, one in enumerate(pending):
            # Copies: an array that shares the memory of a tensor keeps that alive.
            output, gradient = (np.array(host[3 * number + part]) for part in range(2))
            inputs = None if one.inputs is None else np.array(host[3 * number + 2])
            chosen = slice(one.start, None, one.stride)
            self._seen.append(
                _Seen(one.step, output, gradient, one.of_classes, inputs, one.whole, one.last_step, chosen)
            )
        while len(self._seen) > PASSES or sum(one.nbytes for one in self._seen) > MAX_BYTES:
            self._seen, self._every = self._seen[::2], 2 * self._every

    def ledger(self) -> RowLedger | None:
        """Count different rows among those kept, unless they repeat by nature, as a few categories do."""
        kept = [one.inputs for one in self._seen if one.inputs is not None and len(one.inputs)]
        if len(kept) < MIN_PASSES or not all(_seldom_repeats(inputs) for inputs in kept):
            return self.repeated
        rows = [row.tobytes() for inputs in kept for row in inputs]
        known = self.repeated or RowLedger()
        return dataclasses.replace(known, drawn=len(rows), distinct=len(set(rows)), steps=len(kept))

    def facts(self) -> Iterator[Any]:
        """Yield what the targets were, and what else follows from them."""
        self.on_read(self.subject.steps)
        losses, maximized = self.subject.history().losses, are_maximized(self.subject.optimizers)
        yield self.history(losses)
        yield self.ledger()
        yield self.negated(losses, maximized)
        yield self.sides(self.subject.probes[InputSamples].of_both_sides())

    def history(self, losses: LossHistory | None) -> TargetHistory | None:
        """Return the targets, if a formula gives the losses of the run; None otherwise."""
        found = self._agreeing(losses)
        if found is None:
            return None
        name, agreeing = found
        seen, of = [one for one, _ in agreeing], [moments for _, moments in agreeing]
        history = _history(name, seen, of, last_rows(self.subject.model))
        self.repeated = None if history is None else _repeated(agreeing)
        if history is not None and name == "squared":
            self._of_training = np.concatenate([moments.rows for _, moments in agreeing])
        return history

    def negated(self, losses: LossHistory | None, maximized: bool) -> NegatedLoss | None:
        """Return the formula of the run's loss, if the training makes it large.

        Return None for a model that an earlier loop has trained: it is meant to forget, and a loop that follows
        another is watched from about its 20th step on, when the loss may have left the trained model's level.

        Args:
            losses: of the run.
            maximized: whether the optimizers go up the gradient.
        """
        found = None
        if not self.subject.trained_before:
            found = self._agreeing(losses, 1.0 if maximized else -1.0)
        if found is None:
            return None
        formula, of = FORMULAS[found[0]], [moments for _, moments in found[1]]
        one_target = all(one.variance <= ROUNDING * max(1.0, one.square) for one in of)
        constant = formula.constant(of[0].mean, of[0].mean, of[0].square)
        return NegatedLoss(formula.kind, len(of), of[0].loss, of[-1].loss, constant, one_target, maximized)

    def _agreeing(
        self, losses: LossHistory | None, sign: float = 1.0
    ) -> tuple[str, list[tuple[_Seen, _Moments]]] | None:
        """Return the first formula that gives the losses of the run, times a sign, and the passes with it."""
        recorded = {} if losses is None else dict(zip(losses.steps.tolist(), losses.values.tolist(), strict=True))
        seen = [one for one in self._seen if one.step in recorded]
        if len(seen) < MIN_PASSES:
            return None
        read = [(one, one.readings(sign)) for one in seen]
        for name in FORMULAS:
            agreeing = [
                (one, readings[name])
                for one, readings in read
                if name in readings and _agrees(readings[name].loss, sign * recorded[one.step])
            ]
            if len(agreeing) >= MIN_AGREEING * len(seen) and len(agreeing) >= MIN_PASSES:
                return name, agreeing
        return None


def _agrees(loss: float, recorded: float) -> bool:
    return abs(loss - recorded) <= REL_TOLERANCE * abs(recorded) + 1e-9


def _repeated(agreeing: list[tuple[_Seen, _Moments]]) -> RowLedger | None:
    memory = RowMemory()
    for one, moments in agreeing:
        if one.inputs is None or not one.whole or len(one.inputs) != len(moments.rows):
            return None
        if not _of_pairs(moments.rows):
            memory.epoch_begins()
            memory.take([one.inputs], moments.rows)
    return memory.facts()


def _of_pairs(targets: Array) -> bool:
    """Whether the classes are the places in the batch, as where each row is to find its partner."""
    return targets.shape[1] >= len(targets) > 1 and bool((targets.round().sum(axis=0) <= 1).all())


def _history(name: str, seen: list[_Seen], of: list[_Moments], classes: int = 0) -> TargetHistory | None:
    if len({one.mean.shape for one in of}) > 1:
        return None
    sizes = np.array([one.examples for one in seen], float)
    means = np.array([one.mean for one in of])
    answer = np.average(means, axis=0, weights=sizes)
    formula, width = FORMULAS[name], means.shape[1]
    least = 0.0 if formula.kind == "mean_squared_error" else ROUNDING
    if sizes.sum() < EXAMPLES or _drifts(means, np.array([one.square for one in of]), sizes, least):
        return None
    constant = np.array([formula.constant(answer, one.mean, one.square) for one in of])
    losses = np.array([one.loss for one in of])
    late = len(seen) // 2
    fit = order = None
    of_classes = formula.kind == "cross_entropy" or (formula.kind == "binary_cross_entropy" and width == 1)
    if losses[late:].sum() > ENOUGH * constant[late:].sum():
        order = _order(seen, of, of_classes)
    if constant[late:].sum() > 0:
        fit = _fit(seen, of, of_classes)
    steps = np.array([one.step for one in seen])
    rows = np.concatenate([one.rows for one in of]).round(TARGET_DIGITS)
    classed = rows if len(rows) else means.round(TARGET_DIGITS)  # of sequences only the shares are kept
    inputs, targets = _pairs(seen, of)
    return TargetHistory(
        formula.kind,
        steps,
        losses,
        constant,
        int(sizes.sum()),
        width,
        fit,
        only_class(classed) if formula.kind == "cross_entropy" and width == classes else only_target(rows),
        None if inputs is None else blank_rows(inputs, targets.round(TARGET_DIGITS)),
        None if inputs is None else copied_target(inputs, targets, formula.kind, seen[0].last_step),
        inputs is not None and are_standardised(inputs),
        None if inputs is None else sentinel(inputs),
        order,
        None if of_classes else _numbered(seen, of),
    )


def _pairs(seen: list[_Seen], of: list[_Moments]) -> tuple[Array | None, Array]:
    """Return rows of floating-point inputs (n, features), None if not known, and their targets (n, outputs)."""
    pairs = [(inputs, targets) for inputs, targets in _of_rows(seen, of) if inputs.dtype.kind == "f"]
    if not pairs or len({inputs.shape[1:] for inputs, _ in pairs}) > 1:
        return None, np.zeros((0, 0))
    return np.concatenate([inputs for inputs, _ in pairs]), np.concatenate([targets for _, targets in pairs])


def _drifts(means: Array, squares: Array, sizes: Array, least: float) -> bool:
    """Whether the targets of the second half are others than those of the first, beyond chance and `least`."""
    half = len(means) // 2
    first = np.average(means[:half], axis=0, weights=sizes[:half])
    second = np.average(means[half:], axis=0, weights=sizes[half:])
    variance = float(np.average(squares, weights=sizes) - np.square(np.average(means, 0, weights=sizes)).mean())
    chance = 9 * variance * (1 / sizes[:half].sum() + 1 / sizes[half:].sum())
    apart = float(np.square(first - second).mean())
    return bool(apart > DRIFT * max(variance, 0) + max(chance, 0) + least**2)


def _order(seen: list[_Seen], of: list[_Moments], of_classes: bool) -> OrderFit | None:
    pairs = _of_rows(seen, of)
    tokens = bool(pairs) and all(inputs.dtype.kind == "i" and inputs.shape[1] >= TOKENS for inputs, _ in pairs)
    return order_fit(*_together(pairs), of_classes) if tokens else None


def _fit(seen: list[_Seen], of: list[_Moments], of_classes: bool) -> SimpleFit | None:
    rows = _fitted_rows(seen, of)
    return None if rows is None else simple_fit(*rows, of_classes)


def _numbered(seen: list[_Seen], of: list[_Moments]) -> NumberedFit | None:
    rows = _fitted_rows(seen, of)
    return None if rows is None else numbered_fit(*rows)


def _fitted_rows(seen: list[_Seen], of: list[_Moments]) -> tuple[Array, Array] | None:
    """Return inputs and targets for fits; None where the inputs of passes differ in kind or size."""
    pairs = _of_rows(seen, of)
    kinds = {(inputs.dtype.kind, inputs.shape[1:]) for inputs, _ in pairs}
    if not pairs or (len(kinds) > 1 and {kind for kind, _ in kinds} != {"i"}):
        return None
    return _together(pairs)


def _of_rows(seen: list[_Seen], of: list[_Moments]) -> list[tuple[Array, Array]]:
    return [
        (one.inputs, moments.rows)
        for one, moments in zip(seen, of, strict=True)
        if one.inputs is not None and len(one.inputs) == len(moments.rows)
    ]


def _together(pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    longest = max(inputs.shape[1] for inputs, _ in pairs)
    rows = [np.pad(inputs, ((0, 0), (0, longest - inputs.shape[1]))) for inputs, _ in pairs]
    return np.concatenate(rows), np.concatenate([rows for _, rows in pairs]).astype(float)


def _seldom_repeats(inputs: Array) -> bool:
    if inputs.dtype.kind == "f":
        return bool((inputs != np.round(inputs)).mean() > FRACTIONS and inputs.shape[1] > 1)
    return bool(inputs.shape[1] >= TOKENS)
