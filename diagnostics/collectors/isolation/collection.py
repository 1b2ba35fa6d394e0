"""Keeps the work of this library from setting off garbage collections in the script."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Put off automatic garbage collections, for work that makes many short-lived objects.

    Python collects after so many more objects were made than freed. One norm for each of 3,000 parameters sets off
    several collections a step, and soon one of the whole heap: a quarter of a second, in which the finalizers
    of the script's own cycles would also run earlier than without the library. What is made here must be freed
    before the block ends, or the collection comes right after it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
