"""Hears which gradients are clipped while a loss scaler still holds them scaled up."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import ScaledClipFacts
from diagnostics.facts.where import Where

from .discarded import reads_gradients, script_files

NORMS = 256  # of such calls, remembered


class ScaledClips:
    """The calls of one loop that clip gradients, each with the step of a scaler that follows."""

    def __init__(self) -> None:
        self._where: Where | None = None  # of the first call
        self._latest: dict[int, tuple[str, float, float | Tensor | None]] = {}  # by optimizer
        self._clips = self._steps = self._scaled = self._losses = self._divided = 0
        self._files: set[str] = set()
        self._function, self._limit = "", 0.0
        self._seen: deque[tuple[float | Tensor | None, Tensor]] = deque(maxlen=NORMS)

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
