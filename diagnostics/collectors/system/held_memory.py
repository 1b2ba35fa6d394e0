"""Reads how much memory this process holds now."""

from __future__ import annotations

import math
import os


def process_memory() -> float:
    """Return what is resident, in bytes; NaN on systems that have no ``/proc``."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            pages = int(file.read().split()[1])
    except OSError:
        return math.nan
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
