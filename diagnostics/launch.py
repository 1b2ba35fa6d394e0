"""Prevents `python -m diagnostics` from importing modules of the working directory in place of its own."""

from __future__ import annotations

import sys


def _is_being_launched() -> bool:
    """Whether `python -m diagnostics` is locating this package: until then `sys.argv[0]` is "-m"."""
    if sys.argv[:1] != ["-m"] or "-m" not in sys.orig_argv:
        return False
    return sys.orig_argv[sys.orig_argv.index("-m") + 1 :][:1] == ["diagnostics"]


# `python -m` searches the working directory first, and a `json.py` or `rich.py` there belongs to the script.
_taken_off = _is_being_launched() and not sys.flags.safe_path
if _taken_off:
    del sys.path[0]


def come_first(folder: str) -> None:
    """Let a script's own folder be searched first for what it imports."""
    if _taken_off or sys.flags.safe_path:
        sys.path.insert(0, folder)
    else:
        sys.path[0] = folder  # in place of the folder of the command `diagnose`
