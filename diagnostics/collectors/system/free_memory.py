"""Measures the memory that a device has left for this process."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from pathlib import Path

import torch


def free_memory(device: torch.device) -> float:
    """Return the bytes that may still be allocated on a device; infinity if not known."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + unused)
    return min(_of_machine(), _of_container(), _of_process()) if device.type == "cpu" else math.inf


def _of_machine() -> float:
    with contextlib.suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        if found is not None:
            return float(found[1]) * 1024
    return math.inf


def _of_container() -> float:
    """Return what a control group of version 2 or 1 leaves, as Docker and Slurm set it."""
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with contextlib.suppress(OSError, ValueError):  # no such file; "max" for no limit
            return max(0.0, float(int((root / limit).read_text()) - int((root / used).read_text())))
    return math.inf


def _of_process() -> float:
    """Return what `ulimit -d` and `ulimit -v` leave."""
    if sys.platform == "win32":
        return math.inf
    import resource

    left = math.inf
    with contextlib.suppress(OSError):
        pages = Path("/proc/self/statm").read_text().split()
        for kind, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
            limit = resource.getrlimit(kind)[0]
            if limit != resource.RLIM_INFINITY:
                left = min(left, float(limit - int(used) * resource.getpagesize()))
    return max(0.0, left)
