"""Marks computations of this library, so that its hooks ignore them; keeps them from collecting garbage."""

from __future__ import annotations

import contextlib
import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from .user_modes import without_user_modes

_local = threading.local()


class _WithinOwnRun(type(Warning)):  # type: ignore[misc]
    def __subclasscheck__(cls, subclass: type) -> bool:
        return is_own_run()


class _OwnWarning(Warning, metaclass=_WithinOwnRun):
    """Every warning raised in an `own_run`, and no other, whatever its category."""


@contextlib.contextmanager
def own_run() -> Iterator[None]:
    """Mark what this thread runs within as the library's: training a copy, replaying a step."""
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
    """Ignore warnings of an `own_run`; those of other threads are shown as often as without this library.

    `warnings.catch_warnings` would silence all threads, and reset Python's record of the warnings it has shown.
    """
    entry: Any = ("ignore", None, _OwnWarning, None, 0)
    filters: Any = warnings.filters
    filters.insert(0, entry)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the list was replaced meanwhile
            filters.remove(entry)


class _WithoutCollection:
    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        if self._was_enabled:
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            gc.enable()


def without_collection() -> AbstractContextManager[None]:
    """Put off automatic garbage collections, for work that makes many short-lived objects.

    Python collects after so many more objects were made than freed. One norm for each of 3,000 parameters sets off
    several collections a step, and soon one of the whole heap: a quarter of a second, in which the finalizers
    of the script's own cycles would also run earlier than without the library. What is made here must be freed
    before the block ends, or the collection comes right after it.
    """
    return _WithoutCollection()  # not a generator: it is entered in each step
