"""Keeps the work of this library from setting off garbage collections in the script."""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager


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
