"""Ranks the failures in a text by how likely each is the cause, and describes the choice.

One process goes on after a failure that it caught: the last one ended it. Of several processes the first to fail
took the others down, and what a launcher says of it comes after everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .parse import Failure

_ROOT = re.compile(  # in the summary of PyTorch's elastic agent
    r"Root Cause \(first observed failure\):(?:(?!Root Cause).){0,600}?\brank +: (?P<rank>\d+)"
    r".{0,200}?\bexitcode +: (?P<code>-?\d+)",
    re.DOTALL,
)

_TASK = re.compile(r"srun: error: [\w.-]+: task (?P<rank>\d+): Exited with exit code (?P<code>\d+)")


def in_order(failures: Sequence[Failure], text: str) -> list[Failure]:
    """Return the failures, the likeliest origin first.

    Args:
        failures: of one text, in the order in which they were printed.
        text: all of it; the summary of a launcher is looked for in it.
    """
    own = [failure for failure in failures if not failure.aside]
    reports = [failure for failure in reversed(failures) if failure.aside]
    processes = dict.fromkeys(failure.process for failure in own if failure.process is not None)
    root, code = _root(text)
    if root in processes:
        of_root = [failure for failure in reversed(own) if failure.process == root]
        return [*of_root, *(failure for failure in own if failure.process != root), *reports]
    if root is not None and code < 0:  # killed, so that it could say nothing itself
        return [*reports, *own]
    if len(processes) > 1:
        endings = [next(f for f in reversed(own) if f.process == process) for process in processes]
        endings.sort(key=lambda failure: failure.line)
        return [*endings, *(failure for failure in reversed(own) if failure not in endings), *reports]
    return [*(own if root is not None else reversed(own)), *reports]


_AFTERMATH = (
    "KeyboardInterrupt", "SystemExit", "BrokenPipeError", "EOFError", "ConnectionResetError", "Empty",
    "ConnectionRefusedError", "CancelledError", "SignalException", "Exit",
)  # fmt: skip
"""What ends a program, or its other processes, because something else has failed."""


def may_be_caught(last: Failure, earlier: Failure) -> bool:
    """Whether a process went on after a failure, so that it may have nothing to do with the last one."""
    return (
        last.process == earlier.process
        and last.line > earlier.line
        and not last.aside
        and not earlier.aside
        and last.last.exception not in _AFTERMATH
        and bool(last.last.frames or earlier.last.frames)  # two that are only quoted may be of two runs
    )


def _root(text: str) -> tuple[str | None, int]:
    """Read which rank failed first, from the last summary, and its exit code, negative for a signal.

    Of SLURM that is the first task that it names, which ended with an exit code of its own.
    """
    found = list(_ROOT.finditer(text)) if "Root Cause (first observed failure)" in text else []
    if found:
        return f"rank {found[-1]['rank']}", int(found[-1]["code"])
    task = _TASK.search(text) if "srun: error: " in text else None
    return (None, 0) if task is None else (f"rank {task['rank']}", int(task["code"]))


def title(failures: Sequence[Failure], taken: Failure) -> str:
    """Say what was explained: which failure, and of how many."""
    own = [failure for failure in failures if not failure.aside]
    if taken not in own:
        own = list(failures)
    if len(own) == 1:
        return "explained the text of a traceback"
    which = f"of {taken.process}" if taken.process is not None else f"on line {taken.line}"
    return f"explained the failure {which}, one of {len(own)} in the text"
