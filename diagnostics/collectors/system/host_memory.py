"""Measures the host's memory that this process may use. Neither framework is imported."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_GROUP_FILES = (  # of control groups of version 2 and 1, as Docker and Slurm set them
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def host_memory() -> list[tuple[int, int]]:
    """Return every limit of the host's memory, in bytes, and what is left of it.

    Those are the machine's own, a control group's, and what `ulimit -v` and `ulimit -d` set.
    """
    return [(limit, max(0, left)) for limit, left in (*_of_machine(), *_of_container(), *_of_process())]


def _of_machine() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(OSError, KeyError):
        text = Path("/proc/meminfo").read_text()
        sizes = {name: int(size) * 1024 for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
        yield sizes["MemTotal"], sizes["MemAvailable"]


def _of_container() -> Iterator[tuple[int, int]]:
    for limit, used in _GROUP_FILES:
        with contextlib.suppress(OSError, ValueError):  # no such file; "max" for no limit
            allowed = int((_GROUP / limit).read_text())
            yield allowed, allowed - int((_GROUP / used).read_text())
            return


def _of_process() -> Iterator[tuple[int, int]]:
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(OSError):
        pages = Path("/proc/self/statm").read_text().split()
        for kind, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
            limit = resource.getrlimit(kind)[0]
            if limit != resource.RLIM_INFINITY:
                yield limit, limit - int(used) * resource.getpagesize()
