"""Failures that rules know from the table of messages."""

from __future__ import annotations

from diagnostics.collectors.crash.classify import symptoms
from diagnostics.collectors.crash.frames import Crash
from diagnostics.collectors.crash.messages.table import Message, all_messages
from diagnostics.facts.crash import CrashFacts, FrameFacts, Symptom


def rows_by_kind(rule: str) -> dict[str, Message]:
    """Return a row for each kind of a rule's messages whose text is enough to name it."""
    rows = [row for row in all_messages() if row.rule == rule and row.kind and row.cause]
    return {row.kind: row for row in rows if not row.needs and not row.beside}


def recognised(exception: str, message: str, *files: str) -> tuple[CrashFacts, Symptom]:
    """Return the facts of a failure with frames in these files, and the only one that is recognised in it."""
    frames = tuple(FrameFacts(file, 60, "run") for file in files)
    crash = CrashFacts(exception, message, frames, live=False)
    (symptom,) = symptoms(Crash(crash))
    return crash, symptom
