"""Rewrites an exception group as one plain traceback for each exception in it, the group's own frames on top."""

from __future__ import annotations

import re

from .clean import START, Line

GROUP = f"Exception Group {START}"
_MARGIN = re.compile(rf"^(?P<indent> *)(?:\||\+(?= {re.escape(GROUP)}))(?: (?P<rest>.*))?$")
_BRANCH = re.compile(r"^(?P<indent> *)\+(?P<first>-\+)?-{10,} (?:\d+|\.\.\.) -{10,}$")
_END = re.compile(r"^ *\+-{20,}$")


def rewritten(lines: list[Line]) -> list[Line]:
    """Return the lines without margins and group headers; lines outside groups stay."""
    if not any(GROUP in text for _, text in lines):
        return lines
    found: list[Line] = []
    frames: dict[int, list[str]] = {}  # of the groups around a line, by their indent
    reading: int | None = None  # the indent of the group whose own traceback is being read
    begun = False
    for line in lines:
        branch, margin = _BRANCH.match(line.text), _MARGIN.match(line.text)
        if branch is not None and frames:
            indent = len(branch["indent"]) + (2 if branch["first"] else 0)
            frames = {level: kept for level, kept in frames.items() if level < indent}
            found.append(Line(line.number, f"{START}:"))
            found += [Line(line.number, text) for kept in frames.values() for text in kept]
            reading, begun = None, True
        elif margin is None or not (frames or GROUP in line.text):
            frames, reading = ({}, None) if not _END.match(line.text) and line.text.strip() else (frames, reading)
            found.append(Line(line.number, "" if _END.match(line.text) else line.text))
        elif (rest := margin["rest"] or "").startswith(GROUP):
            reading = len(margin["indent"])
            frames = {level: kept for level, kept in frames.items() if level < reading} | {reading: []}
        elif reading is not None:  # what follows the frames is the group's message
            if rest.startswith(" "):
                frames[reading].append(rest)
        elif not (begun and rest.startswith(START)):
            found.append(Line(line.number, rest))
        else:
            begun = False
    return found
