"""Marks what the library itself runs of a user's model, so that its own hooks do not take it for the user's."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from .user_modes import without_user_modes

_local = threading.local()


class _WithinOwnRun(type(Warning)):  # type: ignore[misc]
    def __subclasscheck__(cls, subclass: type) -> bool:
        return is_own_run()


class _OwnWarning(Warning, metaclass=_WithinOwnRun):
    """Any warning raised in an `own_run`, and none raised outside, whatever its category."""


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


@contextlib.contextmanager
def own_warnings_ignored() -> Iterator[None]:
    """Ignore warnings of an `own_run`; those of other threads are shown, and shown as often as without us.

    `warnings.catch_warnings` would silence all threads, and make Python forget which warnings it has shown.
    """
    entry: Any = ("ignore", None, _OwnWarning, None, 0)
    filters: Any = warnings.filters
    filters.insert(0, entry)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the list was replaced meanwhile
            filters.remove(entry)
