"""Measures how long the parts of each training step take."""

from __future__ import annotations

import os
import time

from diagnostics.collectors.isolation.guard import own_seconds
from diagnostics.facts.step_times import PARTS, BatchSource, Part, StepTimes

WARM_UP = 5  # steps that are left out: compilation, allocation of memory, and the examination of the first step
FEWEST, SHORTEST_S = 20, 1.0  # measured steps and their seconds; in less, one hiccup of the machine decides


class StepClock:
    """Adds up the time between events, by the part that lasts until the next one.

    What was measured since the last `keep` or `step` is pending, and may still be dropped: an evaluation is only
    known as such at its end. This library's own work is taken out of each part.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.source: BatchSource | None = None
        self.asynchronous = False
        self._pending, self._kept = dict.fromkeys(PARTS, 0.0), dict.fromkeys(PARTS, 0.0)
        self._pending_batches = self._batches = 0
        self._part: Part | None = None
        self._since = self._own = 0.0

    def begin(self, part: Part | None) -> None:
        """Begin a part, which ends the one before; None for what belongs to no step."""
        now, own = time.perf_counter(), own_seconds()
        if self._part is not None:
            ours = own - self._own
            self._pending[self._part] += max(now - self._since - ours, 0.0)
            self._pending["diagnostics"] += ours
        self._part, self._since, self._own = part, now, own

    def drew(self) -> None:
        """Count a batch."""
        self._pending_batches += 1

    def keep(self) -> None:
        """Add what is pending to the steps."""
        if self.steps >= WARM_UP:
            for part, seconds in self._pending.items():
                self._kept[part] += seconds
            self._batches += self._pending_batches
        self._clear()

    def drop(self) -> None:
        """Forget what is pending."""
        self.begin(None)
        self._clear()

    def step(self) -> None:
        """Count a step, which ends here; the rest begins."""
        self.begin("rest")
        self.keep()
        self.steps += 1

    def times(self) -> StepTimes | None:
        """Return the times so far; None of a run that is too short."""
        measured, seconds = self.steps - WARM_UP, {part: took for part, took in self._kept.items() if took}
        if measured < FEWEST or sum(seconds.values()) < SHORTEST_S:
            return None
        return StepTimes(
            steps=measured,
            skipped=WARM_UP,
            seconds=seconds,
            batches=self._batches,
            source=self.source,
            asynchronous=self.asynchronous,
            cores=_cores(),
        )

    def _clear(self) -> None:
        self._pending_batches = 0
        for part in self._pending:
            self._pending[part] = 0.0


def _cores() -> int:
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known is not None else os.cpu_count() or 1
