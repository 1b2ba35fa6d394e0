"""Counts the calls of a loop that clip gradients: in time, for nothing, or before a loss scaler has divided."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.calls.discarded import reads_gradients, script_files
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import ClipFacts, ScaledClipFacts
from diagnostics.facts.where import Where

NORMS = 256  # of useless calls, remembered
KEPT = 32  # of the others
SCALED = 256  # of those before the step of a loss scaler, remembered


class _Clip(NamedTuple):
    function: str
    limit: float
    norm: float | Tensor | None
    empty: bool


class Clips:
    """The calls of one loop that clip gradients.

    Attributes:
        pending: calls since a step, with no backward pass since either. Before another step they are in time after
            all, as between the steps of two optimizers; before a backward pass they were useless.
    """

    def __init__(self) -> None:
        self.pending: list[_Clip] = []
        self._in_time = self._useless = self._empty = 0
        self._function, self._limit = "", math.nan
        self._norms: deque[float | Tensor] = deque(maxlen=NORMS)
        self._cut_to = math.nan
        self._cut: deque[float | Tensor] = deque(maxlen=KEPT)
        self._read: list[float] = []
        self._cut_from: list[float] = []
        self._where: Where | None = None

    def in_time(self, limit: float, norm: float | Tensor | None) -> None:
        """Record a call between the backward pass and the step of an optimizer; `norm`: that it found."""
        self._in_time += 1
        if norm is not None:
            self._cut_to = limit
            self._cut.append(norm)

    def out_of_time(self, function: str, limit: float, norm: float | Tensor | None, empty: bool) -> None:
        """Record a call with no backward pass since the step; `empty`: whether there was no gradient."""
        if self._where is None:
            self._where = script_line()
        self.pending.append(_Clip(function, limit, norm, empty))

    def step_follows(self) -> None:
        """Count what is pending as in time."""
        pending, self.pending = self.pending, []
        self._in_time += len(pending)

    def backward_follows(self) -> None:
        """Count what is pending as useless."""
        pending, self.pending = self.pending, []
        for clip in pending:
            self._function, self._limit = clip.function, clip.limit
            self._useless += 1
            self._empty += clip.empty
            if clip.norm is not None:
                self._norms.append(clip.norm)

    def read(self) -> None:
        """Read the norms from the device."""
        norms = [*self._norms, *self._cut]
        host = to_host({place: norm for place, norm in enumerate(norms) if isinstance(norm, Tensor)})
        read = [
            float(host[place].mean()) if isinstance(norm, Tensor) else norm for place, norm in enumerate(norms)
        ]
        self._read, self._cut_from = read[: len(self._norms)], read[len(self._norms) :]

    def facts(self) -> ClipFacts | None:
        """Return what was counted, with the norms that were read; None if nothing was clipped."""
        if not self._in_time and not self._useless:
            return None
        norms = np.array(self._read)
        cleared = self._empty == self._useless > 0 or (len(norms) > 0 and not norms.any())
        counts = self._in_time, self._useless
        cut = self._cut_to, np.array(self._cut_from)
        return ClipFacts(self._function, self._limit, *counts, norms, cleared, self._where, *cut)


class ScaledClips:
    """The calls of one loop that clip gradients, each with the step of a scaler that follows."""

    def __init__(self) -> None:
        self._where: Where | None = None  # of the first call
        self._latest: dict[int, tuple[str, float, float | Tensor | None]] = {}  # by optimizer
        self._clips = self._steps = self._scaled = self._losses = self._divided = 0
        self._files: set[str] = set()
        self._function, self._limit = "", 0.0
        self._seen: deque[tuple[float | Tensor | None, Tensor]] = deque(maxlen=SCALED)

    def loss(self) -> None:
        """Record that a loss was scaled."""
        if not self._losses:
            self._files = script_files()[1]
        self._losses += 1

    def divided(self) -> None:
        """Record that the scaler was asked to step, or to divide gradients."""
        self._divided += 1

    def losses(self) -> tuple[int, int]:
        """Return how many losses were scaled, and how often the scaler was asked; see `StepOrderFacts`."""
        if self._losses and not self._divided and any(map(reads_gradients, self._files)):
            return self._losses, -1
        return self._losses, self._divided

    def clipped(self, number: int, function: str, limit: float, norm: float | Tensor | None) -> None:
        """Record a call that clips the gradients of an optimizer to a limit; `norm`: that it found."""
        if not self._clips:
            self._where = script_line()
        self._clips += 1
        self._latest[number] = function, limit, norm

    def steps(self, number: int, scaler: Any, optimizer: Any) -> None:
        """Record `scaler.step(optimizer)`, before it: then it divides gradients that were not divided yet."""
        clipped = self._latest.pop(number, None)
        if clipped is None or not scaler.is_enabled() or not isinstance(scaler._scale, Tensor):
            return
        self._steps += 1
        if scaler._per_optimizer_states[id(optimizer)]["stage"].name != "READY":
            return  # unscale_ was called
        self._scaled += 1
        self._function, self._limit, norm = clipped
        self._seen.append((norm, scaler._scale.detach().clone()))

    def facts(self) -> ScaledClipFacts | None:
        """Return what was heard, read from the device; None if no clipped gradients went to a scaler."""
        if not self._steps:
            return None
        seen = list(self._seen)
        there = {place: value for place, pair in enumerate(seen) for value in pair[1:]}
        there |= {len(seen) + place: norm for place, (norm, _) in enumerate(seen) if isinstance(norm, Tensor)}
        host = to_host(there)
        norms = [
            float(host[len(seen) + place].mean()) if isinstance(norm, Tensor) else np.nan if norm is None else norm
            for place, (norm, _) in enumerate(seen)
        ]
        scales = [float(host[place].mean()) for place in range(len(seen))]
        return ScaledClipFacts(
            self._function,
            self._limit,
            self._steps,
            self._scaled,
            np.array(norms, float),
            np.array(scales),
            self._where,
        )
