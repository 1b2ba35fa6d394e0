"""Steps on their way into the history: written on the device, read back many at a time."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from diagnostics.facts import Array
from diagnostics.history import History
from diagnostics.watch_facts import HistoryFacts

from .held_memory import process_memory
from .torch_gradients import Layers, Update, to_host
from .torch_passes import Pass, fingerprints

LOSSES = 1024  # of one step, remembered: where no optimizer steps any more it is a step without an end


@dataclass
class Gradient:
    """The gradients that one optimizer stepped on: norms (k,), and the numbers of their parameters.

    Attributes:
        scale: what a loss scaler multiplied them by, if it leaves it to the optimizer to divide.
        overflow: () more than 0 if the scaler made the optimizer leave this step out.
    """

    norms: Tensor | list[float]
    which: tuple[int, ...]
    scale: Tensor | None = None
    overflow: Tensor | None = None


@dataclass
class Row:
    """One step, as far as it is known; tensors stay where they are until the row is read."""

    passes: int = 0
    backwards: int = 0
    kept: Pass | None = None
    gradients: list[Gradient] = field(default_factory=list)
    rates: list[float | Tensor] = field(default_factory=list)
    losses: deque[float | Tensor] = field(default_factory=lambda: deque(maxlen=LOSSES))
    clean: bool = False
    leftovers: list[Tensor] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    step: int = -1


@dataclass(frozen=True)
class Failure:
    """The first step whose loss or gradient was not finite.

    Attributes:
        loss: of the step; None if not known.
        loss_bad: whether it is the loss that was not finite.
        gradients: numbers of the parameters whose gradient was not finite.
    """

    step: int
    loss: float | None
    loss_bad: bool
    gradients: tuple[int, ...]
    fingerprint: int
    size: int
    rate: float | None


class Table:
    """Reads rows into the history, and notices the first that is not finite."""

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
                ("zero_gradient_shares", np.float32, shape),
                ("memory_bytes", np.float64),
            ]
        )
        self._sizes = layers.sizes()
        self._layer_sizes = np.bincount(layers.of_parameter, self._sizes, minlength=len(layers.names))
        self._plain: dict[int, Array] = {}
        self.skipped = 0
        self.scaled = False

    def read(self, rows: list[Row], device: torch.device) -> Failure | None:
        """Bring rows to the host and keep them. Return the first failure among them."""
        memory = process_memory()
        if device.type == "cuda":
            memory = float(torch.cuda.memory_allocated(device))
        host = to_host(dict(enumerate(_tensors(rows))))
        values = iter(host[key] for key in range(len(host)))
        with_pass = [row for row in rows if row.kept is not None]
        prints = iter(fingerprints([row.kept for row in with_pass if row.kept is not None]))
        failure = None
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._plain = self._plain_gradients(rows)
            for row in rows:
                found = self._keep(row, _Reader(values), next(prints) if row.kept is not None else 0, memory)
                failure = failure or found
        return failure

    def unfinished(self, row: Row, step: int, latest: int) -> Failure | None:
        """Look at the latest losses of a step that no optimizer has taken yet, as loss scalers leave them out."""
        losses = list(row.losses)[-latest:]
        host = to_host({place: loss for place, loss in enumerate(losses) if isinstance(loss, Tensor)})
        values = [float(host[place].mean()) if place in host else float(loss) for place, loss in enumerate(losses)]
        broken = [value for value in values if not math.isfinite(value)]
        size = row.kept.size if row.kept is not None else 0
        return Failure(step, broken[0], True, (), 0, size, None) if broken else None

    def facts(
        self, *, passes_seen: bool, memory_of: Literal["accelerator", "process"], **known: Any
    ) -> HistoryFacts:
        """Return what was read.

        Args:
            passes_seen: whether forward passes were seen at all.
            memory_of: whose memory `read` has read.
            known: fields of `HistoryFacts` that are not of this table.
        """
        rows, samples = self.steps.arrays(), self.samples.arrays()
        if not rows["loss_known"].any():
            del rows["losses"], rows["loss_known"]
        if not passes_seen:
            del rows["batch_fingerprints"], rows["batch_sizes"]
        if not self.samples.total:
            samples = {}
        elif np.isnan(samples["memory_bytes"]).all():
            del samples["memory_bytes"]
        known |= {**rows, **samples}
        return HistoryFacts(
            layers=self.layers.names,
            memory_of=memory_of if "memory_bytes" in samples else None,
            scaled=self.scaled,
            skipped_steps=self.skipped,
            **known,
        )

    def _keep(self, row: Row, reader: _Reader, fingerprint: int, memory: float) -> Failure | None:
        norms, bad, known = self._gradient(row, reader)
        rates = [reader.number(rate) for rate in row.rates]
        losses = [reader.number(loss) for loss in row.losses]
        loss = sum(losses) / len(losses) if losses else math.nan
        leftovers = [reader.number(tensor) for tensor in row.leftovers]
        zeroed = 1 if row.clean or 0.0 in leftovers else 0 if leftovers else -1
        whole = math.sqrt(float(norms @ norms))
        self.steps.append(
            (
                row.step, loss, bool(losses), whole, norms, known, rates,
                -1 if row.kept is None else int(row.kept.training), row.backwards or row.passes, zeroed,
                fingerprint, row.kept.size if row.kept else 0,
            )
        )  # fmt: skip
        for update in row.updates:
            self._sample(row.step, update, reader, memory)
        loss_bad = bool(losses) and not math.isfinite(loss)
        if not loss_bad and not bad:
            return None
        return Failure(
            row.step, loss if losses else None, loss_bad, bad, fingerprint,
            row.kept.size if row.kept else 0, max(rates, default=None),
        )  # fmt: skip

    def _plain_gradients(self, rows: list[Row]) -> dict[int, Array]:
        """Combine by layer, all rows at once, what is on the host, finite, and of one optimizer: most of it."""
        found: list[tuple[int, list[float]]] = []
        which: tuple[int, ...] | None = None
        for row in rows:
            only = row.gradients[0] if len(row.gradients) == 1 else None
            if (
                only is None
                or isinstance(only.norms, Tensor)
                or only.scale is not None
                or only.overflow is not None
            ):
                continue
            which = which or only.which
            if only.which == which and math.isfinite(sum(only.norms)):
                found.append((row.step, only.norms))
        if which is None or not found:
            return {}
        layers = self.layers.over_layers(np.array([norms for _, norms in found]), which)
        return {step: layers[place] for place, (step, _) in enumerate(found)}

    def _gradient(self, row: Row, reader: _Reader) -> tuple[Array, tuple[int, ...], bool]:
        if row.step in self._plain:
            return self._plain[row.step], (), True
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
            layers = own if layers is None else np.hypot(layers, own)
            if not math.isfinite(norms.sum()):
                bad += [gradient.which[place] for place in np.flatnonzero(~np.isfinite(norms))]
        known = layers is not None
        return np.zeros(len(self.layers.names)) if layers is None else layers, tuple(bad), known

    def _sample(self, step: int, update: Update, reader: _Reader, memory: float) -> None:
        weights = self.layers.over_layers(reader.array(update.weights), update.which)
        change = self.layers.over_layers(reader.array(update.change), update.which)
        ratios = np.where(change == 0, 0.0, change / weights)
        unseen = np.ones(len(weights), dtype=np.bool_)
        unseen[self.layers.of_parameter[list(update.which)]] = False
        ratios[unseen] = weights[unseen] = np.nan
        shares = np.full(len(weights), np.nan)
        if update.nonzero is not None:
            which = list(update.nonzero[1])
            counts = self._sizes[which] - reader.array(update.nonzero[0])
            there = np.bincount(self.layers.of_parameter[which], self._sizes[which], minlength=len(weights))
            zeros = np.bincount(self.layers.of_parameter[which], counts, minlength=len(weights))
            shares = zeros / there
        self.samples.append((step, ratios, weights, shares, memory))


def loss_number(loss: Any) -> float | Tensor | None:
    """Return a loss without its graph, a tensor left where it is; None if it is no number."""
    if isinstance(loss, Tensor):
        if loss.is_cpu and loss.numel() == 1:  # nothing to wait for
            return float(loss.item())
        return loss.detach().clone().float() if loss.numel() == 1 else loss.detach().float().mean()
    try:
        return float(loss)
    except (TypeError, ValueError):
        return None


class _Reader:
    """Takes the values of tensors one after the other, in the order of `_tensors`."""

    def __init__(self, values: object) -> None:
        self._values = values

    def array(self, values: Tensor | list[float]) -> Array:
        if not isinstance(values, Tensor):
            return np.array(values)
        value: Array = next(self._values)  # type: ignore[call-overload]
        return value

    def number(self, value: float | Tensor) -> float:
        if type(value) is float:
            return value
        return float(self.array(value).mean()) if isinstance(value, Tensor) else float(value)


def _tensors(rows: list[Row]) -> list[Tensor]:
    """List every tensor of the rows in the order in which `Table` asks for them."""
    found: list[object] = []
    for row in rows:
        for gradient in row.gradients:
            found += [gradient.norms, gradient.scale, gradient.overflow]
        found += [*row.rates, *row.losses, *row.leftovers]
        for update in row.updates:
            found += [update.weights, update.change]
            found += [update.nonzero[0]] if update.nonzero is not None else []
    return [value for value in found if isinstance(value, torch.Tensor)]
