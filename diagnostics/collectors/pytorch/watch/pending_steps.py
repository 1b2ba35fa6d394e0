"""Holds the records of steps until they are read, many at a time, and has a NaN located that they show."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.norms import taken
from diagnostics.collectors.pytorch.watch.record.step_log import NonFiniteStep, StepLog, StepRecord
from diagnostics.collectors.pytorch.watch.replay.replay_buffer import ReplayBuffer

from .skipped_steps import SkippedSteps
from .training_probe import TrainingProbe, WatchedModel


class PendingSteps:
    """The steps of one loop that are not read yet.

    Reading belongs to the part "readings". The training thread never waits for another: what it cannot read now it
    reads some steps later.

    Args:
        every: steps to read at once.
        log: takes what was read.
        replay: locates a NaN.
        skipped: knows which steps a loss scaler skips.
        watched: the model, whose probes are read along.
        unhooked: returns a context in which no hook of ours is on the model, so that it can be copied.

    Attributes:
        next: the step that is being recorded.
        open: the latest complete step, which may still get its loss; None if it is read.
        lock: held while anything is read.
        closed: whether the training is over.
        on_read: called after each read from the device.
    """

    def __init__(
        self,
        every: int,
        log: StepLog,
        replay: ReplayBuffer,
        skipped: SkippedSteps,
        watched: WatchedModel,
        unhooked: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._every, self._device, self._log = every, watched.device, log
        self._replay, self._skipped, self._probes = replay, skipped, watched.probes
        self._safely, self._faults, self._unhooked = watched.guard.run, watched.guard.faults, unhooked
        self.next = StepRecord()
        self.open: StepRecord | None = None
        self.complete: list[StepRecord] = []
        self._thread = threading.current_thread()  # the one that trains
        self.lock = threading.RLock()
        self.closed = False
        self._failure: NonFiniteStep | None = None  # that another thread has read of
        self.on_read: Callable[[], None] | None = None

    def trains_here(self) -> None:
        """Take this thread for the one that trains."""
        self._thread = threading.current_thread()

    def is_own(self) -> bool:
        """Whether this is the training thread, or that thread has ended."""
        return self.closed or self._thread is threading.current_thread() or not self._thread.is_alive()

    def begin(self, step: int, rates: list[float | Tensor]) -> None:
        """End the recording of a step whose gradients are there; read if there are enough.

        Args:
            step: its number.
            rates: its learning rates.
        """
        if len(self.complete) >= self._every:
            self.read(step)
            if "readings" in self._faults:
                self.complete.clear()
        row, self.next = self.next, StepRecord()
        row.step, row.rates = step, rates
        self.complete.append(row)
        self.open = row

    def add_loss(self, number: float | Tensor) -> None:
        """Add a loss to the step that it belongs to."""
        row = self.open if self.open is not None and not self.next.passes else self.next
        row.losses.append(number)
        if isinstance(number, float) and not math.isfinite(number):
            self._replay.noticed()

    def read(self, steps: int) -> None:
        """Read everything pending from the device, except the step that the training thread is in.

        Args:
            steps: that were made.
        """
        own = self.is_own()
        if self.lock.acquire(blocking=not own):
            try:
                self._safely("readings", self._read if own else self._read_beside, steps)
            finally:
                self.lock.release()

    def look_at_unfinished(self, steps: int, *, losses: bool = True) -> None:
        """Look for a NaN where no optimizer steps: a loss scaler skips every step after the first NaN.

        Args:
            steps: that were made.
            losses: whether to look at the losses of the step that is being recorded.
        """
        self._safely("readings", self._look_at_unfinished, steps, losses)

    def _look_at_unfinished(self, steps: int, losses: bool) -> None:
        failure = self._log.unfinished(self.next, steps, self._every) if losses else None
        failure = failure or self._skipped.failure(self.next.kept)
        if failure is not None and self._replay.origin is None:
            self._replay.copy_now()  # no step has changed them since
            self._find(failure, steps)

    def _read(self, steps: int) -> None:
        rows = taken(self.complete)
        self.open = self.open if self.closed else None
        failure = self._log.read(rows, self._device) if rows else None
        failure, self._failure = self._failure or failure, None
        self._probes.tell(TrainingProbe.on_read, steps)
        if failure is not None and self._replay.origin is None:
            if failure.left_out:
                self._replay.copy_now()  # none of these steps has changed them
            self._find(failure, steps)
        elif self.closed:
            self._replay.look_at_weights(steps - 1, self._log)
        if rows:
            self._replay.drop(rows[-1].step)
        if rows and self.on_read is not None:
            self.on_read()

    def _read_beside(self, steps: int) -> None:
        """Read the completed steps while another thread trains. That thread handles a NaN."""
        rows = self.complete[:-1]
        del self.complete[: len(rows)]
        if rows:
            self._failure = self._log.read(rows, self._device) or self._failure
        self._probes.tell(TrainingProbe.on_read, steps)

    def _find(self, failure: NonFiniteStep, steps: int) -> None:
        with self._unhooked():
            self._replay.find(failure, steps - 1, self._log, "weights" not in self._faults)
