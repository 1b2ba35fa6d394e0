"""Counts the calls of a loop that clip gradients: those in time, and those that clip for nothing."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.where import Where

NORMS = 256  # of useless calls, remembered
KEPT = 32  # of the others


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
