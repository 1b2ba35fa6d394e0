"""Measures the memory of this process: now, and at its peak."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
from pathlib import Path
from typing import Any


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
