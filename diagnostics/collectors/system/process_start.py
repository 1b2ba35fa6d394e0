"""When a process was started, by the clock that files are dated with."""

from __future__ import annotations

import os
import time
from pathlib import Path


def process_start(pid: int) -> float | None:
    """Return when a process was started, in seconds since the epoch; None if the system does not say.

    Only Linux says it, in ticks since it booted: 10 ms, mostly.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
        ticks = int(stat.rpartition(")")[2].split()[19])  # after the name, which may hold blanks and brackets
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return time.time() - (since_boot - ticks / os.sysconf("SC_CLK_TCK"))
