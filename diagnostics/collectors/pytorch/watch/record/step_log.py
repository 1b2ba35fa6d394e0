"""The log of steps: written on the device, read back many at a time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.shared.history import History, training_history
from diagnostics.collectors.system.host_memory import resident_memory
from diagnostics.facts.array import Array
from diagnostics.facts.training import NoGradHistory, TrainingHistory

from .captured_pass import CapturedPass, fingerprints
from .norms import Layers, to_host
from .update_size import Update

LOSSES = 1024  # of one step, remembered: where no optimizer steps any more it is a step without an end
# Steps in a row. A scaler begins at 65,536 and halves that with each step that it leaves out: some are how it
# finds its scale, and after sixteen it multiplies by 1. Ours: after as many again it is not the scale.
SKIPPED = 32


@dataclass(slots=True)
class Gradient:
    """The gradients that one optimizer stepped on: norms (k,), and the numbers of their parameters.

    Attributes:
        scale: the factor of a loss scaler, if the optimizer is to divide by it.
        overflow: () more than 0 if the scaler made the optimizer skip this step.
    """

    norms: Tensor | list[float]
    which: tuple[int, ...]
    scale: Tensor | None = None
    overflow: Tensor | None = None

    @property
    def plain(self) -> bool:
        """Whether the norms are on the host, finite and not scaled."""
        if isinstance(self.norms, Tensor) or self.scale is not None or self.overflow is not None:
            return False
        return math.isfinite(sum(self.norms))


@dataclass(slots=True)
class StepRecord:
    """One step, as far as known; its tensors stay on their device until the record is read."""

    passes: int = 0
    backwards: int = 0
    kept: CapturedPass | None = None
    gradients: list[Gradient] = field(default_factory=list)
    rates: list[float | Tensor] = field(default_factory=list)
    losses: deque[float | Tensor] = field(default_factory=lambda: deque(maxlen=LOSSES))
    clean: bool = False
    leftovers: list[Tensor] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    step: int = -1


@dataclass(frozen=True)
class NonFiniteStep:
    """The first step whose loss or gradient was not finite.

    Attributes:
        loss: of the step; None if not known.
        loss_bad: whether it is the loss that was not finite.
        gradients: numbers of the parameters whose gradient was not finite.
        left_out: steps in a row that were skipped for it.
    """

    step: int
    loss: float | None
    loss_bad: bool
    gradients: tuple[int, ...]
    fingerprint: int
    size: int
    rate: float | None
    left_out: int = 0


class StepLog:
    """Reads records into the history, and finds the first non-finite step."""

    def __init__(self, layers: Layers, groups: int) -> None:
        self.layers = layers
        self.groups = groups
        shape = (len(layers.names),)
        self.steps = History(
            [
                ("steps", np.int64),
                ("losses", np.float64),
                ("loss_known", np.bool_),
                ("gradient_norms", np.float32),
                ("layer_gradient_norms", np.float32, shape),
                ("gradient_known", np.bool_),
                ("learning_rates", np.float64, (groups,)),
                ("training_mode", np.int8),
                ("passes", np.int64),
                ("gradients_zeroed", np.int8),
                ("batch_fingerprints", np.uint64),
                ("batch_sizes", np.int64),
            ]
        )
        self.samples = History(
            [
                ("sampled_steps", np.int64),
                ("update_ratios", np.float32, shape),
                ("weight_norms", np.float32, shape),
                ("memory_bytes", np.float64),
            ]
        )
        self.skipped = 0
        self._left_out = 0  # of them, the latest in a row
        self.scaled = False
        self.reached = np.zeros(len(layers.names), np.bool_)

    def read(self, rows: list[StepRecord], device: torch.device) -> NonFiniteStep | None:
        """Read records from the device and store them. Return the first non-finite step among them."""
        reader = _Reader(to_host({id(tensor): tensor for tensor in _tensors(rows)}))
        kept = [row.kept for row in rows]
        prints = iter(fingerprints([one for one in kept if one is not None]))
        found = [0 if one is None else next(prints) for one in kept]
        losses = [[reader.number(loss) for loss in row.losses] for row in rows]
        means = [sum(own) / len(own) if own else math.nan for own in losses]
        rates = [[reader.number(rate) for rate in row.rates] for row in rows]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            norms, known, bad = self._gradients(rows, reader)
            # All rows at once: reading is a good part of what it costs to watch a small model.
            self.steps.extend(
                len(rows),
                steps=[row.step for row in rows],
                losses=means,
                loss_known=[bool(own) for own in losses],
                gradient_norms=np.sqrt(np.square(norms).sum(axis=1)),
                layer_gradient_norms=norms,
                gradient_known=known,
                learning_rates=rates,
                training_mode=[-1 if one is None else one.training for one in kept],
                passes=[row.backwards or row.passes for row in rows],
                gradients_zeroed=[_zeroed(row, reader) for row in rows],
                batch_fingerprints=found,
                batch_sizes=[0 if one is None else one.size for one in kept],
            )
            self._read_samples(rows, reader, device)
        for place, row in enumerate(rows):
            loss_bad = bool(losses[place]) and not math.isfinite(means[place])
            if loss_bad or bad[place]:
                return NonFiniteStep(
                    row.step, means[place] if losses[place] else None, loss_bad, bad[place], found[place],
                    row.kept.size if row.kept is not None else 0, max(rates[place], default=None),
                )  # fmt: skip
            self._left_out = self._left_out + 1 if row.gradients and not known[place] else 0
        return self._never_made(rows[-1], reader) if self._left_out > SKIPPED else None

    def _never_made(self, row: StepRecord, reader: _Reader) -> NonFiniteStep:
        """Describe the latest of many steps in a row that a fused optimizer was told to skip."""
        bad = [
            np.asarray(gradient.which)[~np.isfinite(reader.array(gradient.norms))] for gradient in row.gradients
        ]
        size = row.kept.size if row.kept is not None else 0
        which = tuple(int(number) for number in np.concatenate(bad))
        return NonFiniteStep(row.step, None, False, which, 0, size, None, self._left_out)

    def unfinished(self, row: StepRecord, step: int, latest: int) -> NonFiniteStep | None:
        """Check the latest losses of a step that no optimizer has taken yet, as with a loss scaler."""
        losses = list(row.losses)[-latest:]
        host = to_host({place: loss for place, loss in enumerate(losses) if isinstance(loss, Tensor)})
        values = [float(host[place].mean()) if place in host else float(loss) for place, loss in enumerate(losses)]
        broken = [value for value in values if not math.isfinite(value)]
        size = row.kept.size if row.kept is not None else 0
        return NonFiniteStep(step, broken[0], True, (), 0, size, None) if broken else None

    def history(
        self,
        total_steps: int,
        memory_holder: Literal["accelerator", "process"],
        evaluations: Sequence[tuple[int, float]],
        saved_after: frozenset[int],
        no_grad: NoGradHistory,
        steps_without_optimizer: int,
    ) -> TrainingHistory:
        """Return what was read, with what the watcher has counted; see `training_history`."""
        return training_history(
            self.steps.arrays(),
            self.samples.arrays(),
            total_steps=total_steps,
            layers=self.layers.names,
            memory_holder=memory_holder,
            evaluations=evaluations,
            saved_after=saved_after,
            no_grad=no_grad,
            scaled=self.scaled,
            reached=self.reached.copy(),
            steps_without_optimizer=steps_without_optimizer,
            skipped_steps=self.skipped,
        )

    def _gradients(
        self, rows: list[StepRecord], reader: _Reader
    ) -> tuple[Array, list[bool], list[tuple[int, ...]]]:
        """Return for each row: norms (n, layers), whether they are known, which parameters' are not finite."""
        norms = np.zeros((len(rows), len(self.layers.names)))
        known = [False] * len(rows)
        bad: list[tuple[int, ...]] = [()] * len(rows)
        plain: list[int] = []
        which: tuple[int, ...] | None = None
        for place, row in enumerate(rows):
            # On the host, finite, and of one optimizer: most of them, and combined by layer all at once.
            if (
                len(row.gradients) == 1
                and (only := row.gradients[0]).plain
                and only.which == (which or only.which)
            ):
                which = only.which
                known[place] = True
                plain.append(place)
            elif row.gradients:
                norms[place], bad[place], known[place] = self._gradient(row, reader)
        if which is not None:
            self.reached[self.layers.of_parameter[list(which)]] = True
            norms[plain] = self.layers.over_layers(
                np.array([rows[place].gradients[0].norms for place in plain]), which
            )
        return norms, known, bad

    def _gradient(self, row: StepRecord, reader: _Reader) -> tuple[Array, tuple[int, ...], bool]:
        layers: Array | None = None
        bad: list[int] = []
        for gradient in row.gradients:
            norms = reader.array(gradient.norms)
            if gradient.scale is not None:
                norms = norms / reader.number(gradient.scale)
                self.scaled = True
            if gradient.overflow is not None and reader.number(gradient.overflow) > 0:
                self.skipped += 1
                continue
            own = self.layers.over_layers(norms, gradient.which)
            self.reached[self.layers.of_parameter[list(gradient.which)]] = True
            layers = own if layers is None else np.hypot(layers, own)
            if not math.isfinite(norms.sum()):
                bad += [gradient.which[place] for place in np.flatnonzero(~np.isfinite(norms))]
        known = layers is not None
        return np.zeros(len(self.layers.names)) if layers is None else layers, tuple(bad), known

    def _read_samples(self, rows: list[StepRecord], reader: _Reader, device: torch.device) -> None:
        if not any(row.updates for row in rows):
            return
        memory = resident_memory()
        if device.type == "cuda":
            memory = float(torch.cuda.memory_allocated(device))
        for row in rows:
            for update in row.updates:
                self._sample(row, update, reader, memory)

    def _sample(self, row: StepRecord, update: Update, reader: _Reader, memory: float) -> None:
        scales = np.array(update.scales)
        moved = reader.array(update.change) * scales
        if update.sampled is not None:
            moved[self._unseen(row, update, moved, reader)] = np.nan
        weights = self.layers.over_layers(reader.array(update.weights) * scales, update.which)
        change = self.layers.over_layers(moved, update.which)
        ratios = np.where(change == 0, 0.0, change / weights)
        unseen = np.ones(len(weights), dtype=np.bool_)
        sizes = self.layers.sizes()  # 0 where FSDP keeps all of a parameter on another rank
        unseen[self.layers.of_parameter[[number for number in update.which if sizes[number]]]] = False
        ratios[unseen] = weights[unseen] = np.nan
        self.samples.append((row.step, ratios, weights, memory))

    def _unseen(self, row: StepRecord, update: Update, moved: Array, reader: _Reader) -> list[int]:
        """Return the places of tensors whose gradient missed what was compared of them, as of rare tokens it may.

        That nothing moved there does not say that nothing moved.
        """
        assert update.sampled is not None
        full = {n: g for own in row.gradients for n, g in zip(own.which, reader.array(own.norms), strict=True)}
        return [
            place
            for place, norm in zip(update.sampled_which, reader.array(update.sampled), strict=True)
            if moved[place] == 0 and (np.isnan(norm) or (norm == 0 and full.get(update.which[place], 0.0) != 0))
        ]


def loss_number(loss: Any) -> float | Tensor | None:
    """Return a loss without its graph, a tensor left where it is; None if it is no number."""
    if isinstance(loss, Tensor):
        if loss.is_complex() or not loss.numel():
            return None
        if loss.is_cpu and loss.numel() == 1:  # nothing to wait for
            return float(loss.item())
        return loss.detach().clone().float() if loss.numel() == 1 else loss.detach().float().mean()
    try:
        return float(loss)
    except Exception:  # no number, one that no float can hold, or a class of the user's own
        return None


def _zeroed(row: StepRecord, reader: _Reader) -> int:
    """Return 1 if the gradients were zeroed before the backward pass, 0 if not, -1 if that is not known."""
    if row.clean or not row.leftovers:
        return 1 if row.clean else -1
    return int(0.0 in [reader.number(tensor) for tensor in row.leftovers])


class _Reader:
    """Looks up the host copies of tensors.

    Args:
        host: by the identity of the tensor.
    """

    def __init__(self, host: dict[int, Array]) -> None:
        self._host = host

    def array(self, values: Tensor | list[float]) -> Array:
        return self._host[id(values)] if isinstance(values, Tensor) else np.array(values)

    def number(self, value: float | Tensor) -> float:
        if type(value) is float:
            return value
        return float(self.array(value).mean()) if isinstance(value, Tensor) else float(value)


def _tensors(rows: list[StepRecord]) -> list[Tensor]:
    """List every tensor of the records."""
    found: list[object] = []
    for row in rows:
        for gradient in row.gradients:
            if type(gradient.norms) is not list or gradient.scale is not None or gradient.overflow is not None:
                found += (gradient.norms, gradient.scale, gradient.overflow)
        found += [value for value in (*row.rates, *row.losses) if type(value) is not float]  # on a CPU, none
        found += row.leftovers
        for update in row.updates:
            found += (update.weights, update.change, update.sampled)
    return [value for value in found if isinstance(value, Tensor)]
