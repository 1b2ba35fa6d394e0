"""Finds the last lines of a process that ended without a traceback: killed, or aborted in C++."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.out_of_memory import KILLED
from diagnostics.facts.crash import CrashFacts

_ENDED_BY_SHELL = re.compile(r"^(?:.*(?:\d|\])[:\s]+)?Killed\b(?:\s+\S.*)?$|^(?:zsh|bash): killed\b.*$")
_HINT = re.compile(r"[Kk]illed|SIGKILL|exitcode|oom")  # of what the next two find, in one quick look
_ABORTED = re.compile(
    r"terminate called after throwing an instance of '(?:\w+::)*(?P<name>\w+)'\s+what\(\):\s*(?P<message>.+)"
)


def last_words(text: str) -> CrashFacts | None:
    """Return how the process ended, if the text says it; None if it does not.

    A shell writes no more than ``Killed``; the exception is then called ``SIGKILL``, after the signal. Of an abort
    it is the C++ exception's name: ``AcceleratorError``, ``bad_alloc``.
    """
    aborted = _ABORTED.search(text)
    if aborted is not None:
        return CrashFacts(aborted["name"], aborted["message"].strip(), (), live=False)
    for line in reversed([line.strip() for line in text.splitlines() if _HINT.search(line)]):
        if _ENDED_BY_SHELL.match(line) or KILLED.search(line):
            return CrashFacts("SIGKILL", line, (), live=False)
    return None
