"""What the host and the device did, and when: what a notebook draws as two bars."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

KEPT: Final = 20_000  # operations, and as many waits; older ones are forgotten


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the device. Times are `time.perf_counter()`, in seconds."""

    name: str  # "addmm"
    launched: float  # when the host put it into the queue
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Wait:
    """A span in which the host did nothing but wait for the device. Times as in `Operation`."""

    reason: str  # "item", "copy to the host", "nonzero", "synchronize", "blocking launch", "full queue"
    started: float
    ended: float


@dataclass(frozen=True)
class Timeline:
    """What was recorded since the start or the last `clear_timeline`, oldest first, in the order it ended."""

    operations: tuple[Operation, ...]
    waits: tuple[Wait, ...]


class Recorder:
    """Takes operations from the worker and waits from any thread, and keeps the newest `KEPT` of each."""

    def __init__(self) -> None:
        self._operations: deque[Operation] = deque(maxlen=KEPT)
        self._waits: deque[Wait] = deque(maxlen=KEPT)
        self.ran = self._operations.append
        self.waited = self._waits.append

    def timeline(self) -> Timeline:
        """Return a copy of what has been recorded so far."""
        return Timeline(tuple(self._operations.copy()), tuple(self._waits.copy()))

    def clear(self) -> None:
        """Forget everything."""
        self._operations.clear()
        self._waits.clear()
