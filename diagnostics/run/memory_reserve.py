"""Keeps some address space for the report, for scripts that end because no memory is left."""

from __future__ import annotations

import contextlib
import mmap

import numpy as np

SIZE = 64 << 20  # bytes; with NumPy's buffer, 64 MiB were enough to explain a failure and write the report, 32 not


class MemoryReserve:
    """Address space that is given back when the script has failed.

    A limit on a process's memory (`ulimit -d` or `-v`, `resource.setrlimit`, strict overcommit) counts it. Its
    pages are never touched, so it takes no physical memory.
    """

    def __init__(self) -> None:
        """Take it, where there is so much; not on Windows.

        NumPy's linear algebra takes a buffer of 32 MiB at its first product, and ends the process where it gets
        none. It is taken here, and not while a script is watched that has less left than that.
        """
        _ = np.ones((2, 2)) @ np.ones((2, 2))
        self._space: mmap.mmap | None = None
        if hasattr(mmap, "MAP_PRIVATE"):  # a shared mapping, mmap's default, is not counted
            with contextlib.suppress(OSError, ValueError):
                self._space = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def release(self) -> None:
        """Give it back. Releasing twice does no harm."""
        if self._space is not None:
            self._space.close()
            self._space = None
