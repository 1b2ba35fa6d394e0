"""Counts the seconds that guarded work of this library takes within the user's program."""

from __future__ import annotations

import threading
import time


class _Within(threading.local):
    """Whether this thread is within guarded work; calls in it are part of it."""

    work = False


_within = _Within()
_is_measured = False  # once somebody asks
_seconds = 0.0  # of all threads: a backward pass on an accelerator calls our hooks in a thread of its own


def own_seconds() -> float:
    """Return the seconds since this was first asked. Work that is under way counts once it has ended."""
    global _is_measured
    _is_measured = True
    return _seconds


def own_work_begins() -> float:
    """Return the time, for `own_work_ends`; 0 within other work of this library, and while nobody asks."""
    if not _is_measured or _within.work:
        return 0.0
    _within.work = True
    return time.perf_counter()


def own_work_ends(begun: float) -> None:
    """Count the work since; `begun`: what `own_work_begins` returned."""
    global _seconds
    if begun:
        _within.work = False
        _seconds += time.perf_counter() - begun
