"""Recognises the reports of launchers, and collectives that were given up."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import (
    CollectiveTimeoutCrash,
    LauncherTail,
    WaitingRank,
)

from .frames import Crash, Recogniser
from .messages.table import Family, Found

WATCHDOG = Family("watchdog")
LAUNCHERS = Family("launchers")
_RENDEZVOUS = Family("rendezvous")
_GLOO = Family("gloo")

_SIGNALS = {"Segmentation fault": 11, "Aborted": 6, "Bus error": 7}
_COMMAND = re.compile(r"Command (?P<words>.*) returned non-zero exit status (?P<code>\d+)", re.DOTALL)


def _launcher(crash: Crash) -> LauncherTail | None:
    facts = crash.facts
    found = LAUNCHERS.search(f"{facts.exception}: {facts.message}")
    if found is None:
        return _launcher_by_frames(facts)
    if found.kind == "torchrun":
        text = f"{facts.message}\n{crash.log}"
        text = text[max(text.find("Root Cause (first"), 0) :]  # the others were stopped by the launcher
        rank = re.search(r"^[ \t]*rank[ \t]*: (\d+)", text, re.MULTILINE)
        code = re.search(r"exitcode\s*: (-?\d+)", text)
        return LauncherTail(found.kind, rank and int(rank[1]), code and int(code[1]))
    if found.kind == "accelerate" and not any("accelerate" in frame.file for frame in facts.frames):
        return _launcher_by_frames(facts)
    ended = _number(found, "code")
    if (number := _number(found, "number")) is not None:
        ended = -number
    elif (name := found.get("signal")) is not None:
        ended = -_SIGNALS[name]
    return LauncherTail(found.kind, _number(found, "rank"), ended)


def _launcher_by_frames(facts: CrashFacts) -> LauncherTail | None:
    """Recognise a launcher's report without the launcher's frames, or with its last line cut off."""
    found = _COMMAND.match(facts.message.strip()) if facts.exception == "CalledProcessError" else None
    own = any(frame.yours for frame in facts.frames)
    if found is not None and "python" in found["words"] and ".py" in found["words"] and not own:
        return LauncherTail("the launcher", None, int(found["code"]))
    cut_off = facts.exception in ("", "errors") and facts.frames
    return LauncherTail("torchrun") if cut_off and "ChildFailedError" in (facts.frames[-1].code or "") else None


def _number(found: Found, group: str) -> int | None:
    held = found.get(group)
    return None if held is None else int(held)


_LOGGED = re.compile(r"(OpType|SeqNum|NumelIn|Timeout\(ms\))=(\w+)")  # of a collective, by NCCL's watchdog


def _logged(found: Found) -> dict[str, str]:
    return dict(reversed(_LOGGED.findall(found.text)))  # the first of each name counts


def _collective_timeout(crash: Crash) -> CollectiveTimeoutCrash | None:
    message = crash.facts.message
    if found := _RENDEZVOUS.search(message):
        seconds = None if (said := found.get("seconds")) is None else float(said)
        return CollectiveTimeoutCrash(seconds=seconds, joined=(int(found["came"]), int(found["of"])))
    if found := _GLOO.search(message):
        return CollectiveTimeoutCrash(seconds=int(found["ms"]) / 1000)
    if found := WATCHDOG.search(message):
        logged = _logged(found)
        limit = logged.get("Timeout(ms)")
        return CollectiveTimeoutCrash(
            rank=_number(found, "rank"),
            operation=logged.get("OpType"),
            number=int(logged["SeqNum"]) if "SeqNum" in logged else None,
            seconds=None if limit is None else int(limit) / 1000,
            waiting=_waiting_ranks(crash.log),
        )
    return None


def _waiting_ranks(log: str) -> tuple[WaitingRank, ...]:
    """Read the watchdogs' messages of all ranks: the first of each, because later ones follow from it.

    Of several process groups those of the first one are read: each counts its collectives by itself.
    """
    first: dict[int, WaitingRank] = {}
    groups: list[str] = []
    for found in WATCHDOG.each(log):
        group = re.match(r"\[PG (.{0,80}?)Rank \d", found.text)
        groups.append("" if group is None else group[1])
        if groups[-1] != groups[0]:
            continue
        said, rank = _logged(found), _number(found, "rank")
        if rank is not None and {"OpType", "SeqNum"} <= set(said):
            size = int(said["NumelIn"]) if "NumelIn" in said else None
            first.setdefault(rank, WaitingRank(rank, said["OpType"], int(said["SeqNum"]), size))
    return tuple(first[rank] for rank in sorted(first))


RECOGNISERS: tuple[Recogniser, ...] = (
    _collective_timeout,
    _launcher,
)
