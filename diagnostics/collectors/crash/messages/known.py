"""Recognises messages whose row in the table holds the cause and the fix, too."""

from __future__ import annotations

import re
from dataclasses import replace

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash import KnownFailure

from .table import CUT, FIRST, ORDINARY, SHARED, Found, Message, all_messages

MOST_SEARCHED = 6_000  # characters, at the beginning and at the end of a message: some hold a whole batch
MOST_SAID = 200  # characters of the message in the evidence
_UNSAID = re.compile(r" \((?:, )?\)")
"""What is left of numbers in brackets where the message does not name them."""


def certain(crash: Crash) -> KnownFailure | None:
    """Ask before all others: wordings in which a general message names its cause."""
    return _first(crash, FIRST)


def last(crash: Crash) -> KnownFailure | None:
    """Ask when no other recogniser knows the crash."""
    found = _first(crash, ORDINARY, SHARED)
    if found is None and "`" in crash.facts.message[:MOST_SEARCHED]:  # releases differ in what they quote
        plain = replace(crash.facts, message=crash.facts.message.replace("`", ""))
        return _first(replace(crash, facts=plain), ORDINARY, SHARED)
    return found


def cut(crash: Crash) -> KnownFailure | None:
    """Ask when nothing knows the crash: sentences that are quoted without their numbers, or cut off before."""
    return _first(crash, CUT)


def _first(crash: Crash, *priorities: int) -> KnownFailure | None:
    text = crash.facts.message
    if len(text) > 2 * MOST_SEARCHED:
        text = f"{text[:MOST_SEARCHED]}\n{text[-MOST_SEARCHED:]}"
    named = f"{crash.facts.exception}: {text}"  # some exceptions have no message of their own
    for row in all_messages():
        match = row.search(text) or row.search(named) if row.cause and row.priority in priorities else None
        if match is not None and _is_within(row, crash):
            return explained(Found(row, match, row.search_beside(crash.log) if row.beside else None))
    return None


def _is_within(message: Message, crash: Crash) -> bool:
    if message.beside and not message.search_beside(crash.log):
        return False
    files = [frame.file.replace("\\", "/") for frame in crash.facts.frames]
    if message.at and not (files and re.search(message.at, files[-1])):
        return False
    alone = message.priority == FIRST and not message.needs
    frames_tell = crash.facts.frames or alone or message.is_told_by_frames
    return not message.within or not frames_tell or any(re.search(message.within, file) for file in files)


def explained(found: Found) -> KnownFailure:
    """Fill the cause and the fix of a row with what its groups hold."""
    groups = {**found.match.groupdict(), **(found.beside.groupdict() if found.beside else {})}
    held = {name: " ".join((value or "").split()) for name, value in groups.items()}
    message = found.message
    fixes = tuple(fix.format_map(held) for fix in message.fix)
    said = " ".join(found[0].split())[:MOST_SAID]
    cause = _UNSAID.sub("", message.cause.format_map(held)).removesuffix(": ")
    return KnownFailure(message.rule, cause, fixes, said, message.kind, held.get("what"))
