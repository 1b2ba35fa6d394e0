"""Keeps some address space for the report, for scripts that end because no memory is left."""

from __future__ import annotations

import contextlib
import mmap

# Bytes. NumPy's linear algebra takes a buffer of 32 MiB, and ends the process where it gets none: with 32 MiB no
# report was written, with 64 each was.
SIZE = 128 << 20


class MemoryReserve:
    """Address space that is given back when the script has failed.

    A limit on a process's memory (`ulimit -d` or `-v`, `resource.setrlimit`, strict overcommit) counts it. Its
    pages are never touched, so it takes no physical memory.
    """

    def __init__(self) -> None:
        """Take it; not on Windows, nor where there is not so much left."""
        self._space: mmap.mmap | None = None
        if hasattr(mmap, "MAP_PRIVATE"):  # a shared mapping, mmap's default, is not counted
            with contextlib.suppress(OSError, ValueError):
                self._space = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def release(self) -> None:
        """Give it back. Releasing twice does no harm."""
        if self._space is not None:
            self._space.close()
            self._space = None
