"""Measures the host's memory, and that of this process: now, and at its peak. No framework is imported."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def resident_memory() -> float:
    """Return the resident bytes; NaN on systems without ``/proc``."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            pages = int(file.read().split()[1])
    except OSError:
        return math.nan
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def peak_memory() -> tuple[int | None, str]:
    """Return the peak in bytes, and where it was measured: ``GPU`` or ``host``.

    On GPUs: what PyTorch reserved or TensorFlow used, on all of them together. On the host: resident memory, with
    the interpreter and its libraries. No framework is imported for this.
    """
    for read in (_torch, _tensorflow):
        with contextlib.suppress(Exception):  # a lost device, an older version: then the host's figure must do
            if peak := read():
                return peak, "GPU"
    return _host(), "host"


def _torch() -> int:
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return 0
    return sum(torch.cuda.max_memory_reserved(index) for index in range(torch.cuda.device_count()))


def _tensorflow() -> int:
    tensorflow: Any = sys.modules.get("tensorflow")
    if tensorflow is None:
        return 0
    config = tensorflow.config
    cards = range(len(config.list_physical_devices("GPU")))
    return sum(int(config.experimental.get_memory_info(f"GPU:{index}")["peak"]) for index in cards)


def _host() -> int | None:
    with contextlib.suppress(OSError):
        # Not getrusage: a child process begins there with its parent's peak.
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        if found is not None:
            return int(found[1]) * 1024
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
