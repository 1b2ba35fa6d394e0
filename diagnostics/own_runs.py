"""Marks what the library itself runs of a user's model, so that its own hooks do not take it for the user's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from .probes.user_modes import without_user_modes

_local = threading.local()


@contextlib.contextmanager
def own_run() -> Iterator[None]:
    """Whatever runs within, in this thread, is ours: a copy that is trained, a step that is run again."""
    before = is_own_run()
    _local.running = True
    try:
        with without_user_modes():
            yield
    finally:
        _local.running = before


def is_own_run() -> bool:
    """Whether this thread is within an `own_run`."""
    return getattr(_local, "running", False)
