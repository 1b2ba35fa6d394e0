"""What Linux says of processes: when one was started, and which ranks a launcher has running."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STATE, _PARENT, _STARTED = 0, 1, 19  # fields of `stat`, after the name


def process_start(pid: int) -> float | None:
    """Return when a process was started, in seconds since the epoch; None if the system does not say.

    Only Linux says it, in ticks since it booted: 10 ms, mostly.
    """
    try:
        ticks = int(_stat(pid)[_STARTED])
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return time.time() - (since_boot - ticks / os.sysconf("SC_CLK_TCK"))


def running_ranks(launcher: int) -> set[int] | None:
    """Return the ranks among the children of a process that have not ended, by `RANK`; None if it is not known."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return None
    ranks = set()
    for pid in pids:
        try:
            found = _stat(pid)
            if int(found[_PARENT]) != launcher or found[_STATE] in "ZX":
                continue
            given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except (OSError, ValueError, IndexError):
            return None
        ranks |= {int(value[5:]) for value in given if value.startswith(b"RANK=") and value[5:].isdigit()}
    return ranks


def _stat(pid: int) -> list[str]:
    text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    return text.rpartition(")")[2].split()  # the name may hold blanks and brackets
