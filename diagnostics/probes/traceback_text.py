"""Reads the text of a traceback, as Python prints it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from diagnostics.crash_facts import CrashFacts, FrameFacts

from . import keras_traceback
from .frames import is_yours, outside_dispatch, shorten

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_START = "Traceback (most recent call last)"
_FROM_WORKER = re.compile(  # torch._utils.ExceptionWrapper: of a data loader's worker, or of a replica
    rf"Caught \w+ in [^\n]+\.\nOriginal {re.escape(_START)}:\n(?P<original>.*)", re.DOTALL
)
_FRAME = re.compile(r'^\s*File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_NOTEBOOK_FRAME = re.compile(
    r"^(?:File|Cell) (?P<file>.+?)(?::(?P<line>\d+)|, line (?P<cell>\d+))(?:, in (?P<function>\S+?)\(|$)"
)
_BOXED_FRAME = re.compile(r"^│ (?P<file>\S.*?):(?P<line>\d+) in (?P<function>\S+)\s*│$")  # as rich prints it
_EXCEPTION = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)


def parse(text: str) -> list[CrashFacts]:
    """Find every traceback in a text, in the order printed; the last is the one that ended the program.

    Colours are removed; what stands before the first traceback (logs, progress bars) is passed over. A text
    that is nothing but its last line (``IndexError: Target 2 is out of bounds.``) counts as a traceback
    without frames. An empty list: there is none.
    """
    return [crash for failure in failures(text) for crash in failure]


def failures(text: str) -> list[list[CrashFacts]]:
    """Find the same, each with the exceptions that it came of: they were printed before it and stand before it."""
    lines = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if _START in line and not _is_within(lines, number)]
    if not starts:
        crash = _parse_one([line for line in lines if line.strip()])
        return [] if crash is None else [[crash]]
    found: list[list[CrashFacts]] = []
    chained = False
    for start, end in pairwise([*starts, len(lines)]):
        prefix = lines[start][: lines[start].index(_START)].rstrip()
        if not "".join(lines[start + 1 : start + 2]).startswith(prefix):
            prefix = ""  # it belongs to that line alone: a logger's stamp, a progress bar, a notebook's heading
        crash = _parse_one(
            [line.removeprefix(prefix).removeprefix(" ") if prefix else line for line in lines[start + 1 : end]]
        )
        if crash is not None:
            if chained and found:
                found[-1].append(unwrapped(crash))
            else:
                found.append([unwrapped(crash)])
        chained = any(mark in line for line in lines[start:end] for mark in _CHAINED)
    return found


def _is_within(lines: list[str], number: int) -> bool:
    """Whether a traceback is part of the message of another."""
    before = lines[number - 1] if number else ""
    return f"Original {_START}" in lines[number] or keras_traceback.PASSED_ON in before


def unwrapped(crash: CrashFacts) -> CrashFacts:
    """Return the error within the message of another: of a data loader's worker, or of a graph of TensorFlow's."""
    wrapped = _FROM_WORKER.search(crash.message)
    original = None if wrapped is None else _parse_one(wrapped["original"].split("\n"))
    if original is None:
        return keras_traceback.unwrapped(crash)
    return replace(crash, message=original.message, frames=(*crash.frames, *original.frames))


def _parse_one(lines: list[str]) -> CrashFacts | None:
    frames: list[FrameFacts] = []
    for number, line in enumerate(lines):
        frame = _FRAME.match(line) or _NOTEBOOK_FRAME.match(line) or _BOXED_FRAME.match(line)
        if frame is not None:
            frames.append(_read_frame(frame.groupdict(), lines[number + 1 : number + 2]))
            continue
        exception = _EXCEPTION.match(line)
        if exception is not None and (_is_exception(exception["name"]) or (frames and line[0].isupper())):
            message = "\n".join([exception["message"] or "", *_rest_of_message(lines[number + 1 :])])
            name = exception["name"].rpartition(".")[2]
            return CrashFacts(name, message.strip(), outside_dispatch(frames), live=False)
    return None


def _read_frame(found: dict[str, str | None], following: list[str]) -> FrameFacts:
    file = found["file"] or ""
    code = following[0].strip() if following and not _FRAME.match(following[0]) else ""
    line = int(found.get("line") or found.get("cell") or 0)
    return FrameFacts(shorten(file), line, found.get("function") or "<module>", code or None, is_yours(file))


def _is_exception(name: str) -> bool:
    last = name.rpartition(".")[2]
    if last in ("Error", "Exception", "Warning") and "." not in name:
        return False  # a word in a log, more often than a class
    return last[0].isupper() and (
        last.endswith(("Error", "Exception", "Interrupt", "Exit", "Warning")) or "." in name
    )


def _rest_of_message(lines: list[str]) -> list[str]:
    rest: list[str] = []
    for line in lines:
        if line.strip() in _CHAINED:
            break
        rest.append(line)
    return rest
