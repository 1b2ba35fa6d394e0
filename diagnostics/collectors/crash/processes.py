"""Recognises the reports of launchers, and collectives that were given up."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CollectiveTimeoutCrash, LauncherTail, WaitingRank

from .frames import Crash, Recognisers
from .messages.table import Found, find, find_each

RECOGNISERS = Recognisers()

_SIGNALS = {"Segmentation fault": 11, "Aborted": 6, "Bus error": 7}


@RECOGNISERS.reading("rendezvous", "gloo", "watchdog")
def _collective_timeout(crash: Crash, found: Found) -> CollectiveTimeoutCrash | None:
    limit, came = found.number("ms"), found.number("came")
    return CollectiveTimeoutCrash(
        rank=found.number("rank"),
        operation=found.get("operation"),
        number=found.number("number"),
        seconds=found.number("seconds") if limit is None else limit / 1000,
        joined=None if came is None else (came, int(found["of"])),
        waiting=_waiting_ranks(crash.log),
    )


def _waiting_ranks(log: str) -> tuple[WaitingRank, ...]:
    """Read the watchdogs' messages of all ranks: the first of each, because later ones follow from it.

    Of several process groups those of the first one are read: each counts its collectives by itself.
    """
    each = list(find_each(log, "watchdog"))
    first: dict[int, WaitingRank] = {}
    for found in each:
        rank, number, operation = found.number("rank"), found.number("number"), found.get("operation")
        if rank is None or number is None or operation is None or found.get("group") != each[0].get("group"):
            continue
        first.setdefault(rank, WaitingRank(rank, operation, number, found.number("elements")))
    return tuple(first[rank] for rank in sorted(first))


@RECOGNISERS.asked
def launcher_tail(crash: Crash) -> LauncherTail | None:
    """Read what a launcher reports of the process that failed first."""
    facts = crash.facts
    found = find(f"{facts.exception}: {facts.message}", "launchers")
    if found is None:
        cut_off = facts.exception in ("", "errors") and facts.frames
        raises = cut_off and "ChildFailedError" in (facts.frames[-1].code or "")
        return LauncherTail("torchrun") if raises else None
    launcher, ended = found.kind, found.number("code")
    if launcher == "torchrun":
        text = f"{facts.message}\n{crash.log}"
        text = text[max(text.find("Root Cause (first"), 0) :]  # the others were stopped by the launcher
        rank = re.search(r"^(?:\[\S+)?[ \t]*rank[ \t]*: (\d+)", text, re.MULTILINE)
        code = re.search(r"exitcode\s*: (-?\d+)", text)
        return LauncherTail(launcher, rank and int(rank[1]), code and int(code[1]))
    if launcher == "accelerate" and not any("accelerate" in frame.file for frame in facts.frames):
        launcher = "the launcher"  # whose frames are not there: any subprocess says so
        if "python" not in found[0] or ".py" not in found[0] or any(frame.yours for frame in facts.frames):
            return None
    if (number := found.number("number")) is not None:
        ended = -number
    elif (name := found.get("signal")) is not None:
        ended = -_SIGNALS[name]
    return LauncherTail(launcher, found.number("rank"), ended)
