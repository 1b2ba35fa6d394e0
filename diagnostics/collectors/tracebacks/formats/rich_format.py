"""Rewrites the tracebacks that rich draws in boxes as Python prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..clean import START, Line

_TOP = re.compile(rf"[╭┌+][─-]{{2,}} .{{0,400}}{re.escape(START)}.{{0,400}} [─-]{{2,}}[╮┐+]\s*$")
_BOTTOM = re.compile(r"^\s*[╰└+][─-]{3,}[╯┘+]\s*$")
_ROW = re.compile(r"^\s*[│|] (?P<row>.*?) ?[│|]\s*$")
_PLACE = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+) in (?P<function>\S+)$")
_CELL = re.compile(r"^in (?P<function><[^>]+>|\S+):(?P<line>\d+)$")
_MARKED = re.compile(r"^[❱>] *\d+ [│|]? ?(?P<code>.*)$")


def rewritten(lines: list[Line]) -> list[Line]:
    """Return the lines with every traceback that rich drew as Python prints it; all others stay.

    The first box may lack its top: people copy the end of what a terminal shows.
    """
    found: list[Line] = []
    top_at = next((index for index, line in enumerate(lines) if START in line.text), len(lines))
    headless = any("❱" in text and _ROW.match(text) for _, text in lines[:top_at])
    box: list[Line] | None = None
    width = 0  # of the box just closed: rich breaks the message at it
    said = ""  # the line of the message that was last read
    for line in lines:
        if START in line.text and (top := _TOP.search(line.text)):
            found.append(Line(line.number, f"{START}:"))
            box, width, headless = [], len(top[0].rstrip()), False
        elif headless and box is None and (row := _ROW.match(line.text)):
            box, headless = [Line(line.number, row["row"].rstrip())], False
        elif box is not None and _BOTTOM.match(line.text) and len(line.text.strip()) >= width - 1:
            found += _frames(box)
            box, said = None, ""
        elif box is not None and (row := _ROW.match(line.text)):
            box.append(Line(line.number, row["row"].rstrip()))
        elif box is not None:  # cut off
            found += [*_frames(box), line]
            box, width = None, 0
        elif width and _was_broken(said, line.text, width):
            number, before = found.pop()
            found.append(Line(number, before + ("" if len(said) >= width else " ") + line.text))
            said = line.text.rstrip()
        else:
            found.append(line)
            said = line.text.rstrip()
            width = width if said else 0
    return found if box is None else [*found, *_frames(box)]


def _was_broken(before: str, line: str, width: int) -> bool:
    """Whether a line continues the one before it, which had no room for its first word."""
    if not before or not line.strip() or line.startswith(" "):
        return False
    return len(before) + 1 + len(line.split()[0]) > width >= len(line.rstrip())


def _frames(box: list[Line]) -> Iterator[Line]:
    """Read the places and the marked lines in a box; a long path takes several rows."""
    place = ""
    for number, row in box:
        if not row or row[0] in "╭╰│┌└|":
            place = ""
        elif row.startswith((" ", "❱", ">")):
            place = ""
            if marked := _MARKED.match(row):
                yield Line(number, f"    {marked['code'].strip('│ ')}")
        else:
            place += f" {row}" if place.endswith((" in", ":")) else row
            if found := _PLACE.match(place):
                yield Line(number, f'  File "{found["file"]}", line {found["line"]}, in {found["function"]}')
                place = ""
            elif found := _CELL.match(place):
                function = "<module>" if found["function"].startswith("<cell line") else found["function"]
                yield Line(number, f'  File "<cell>", line {found["line"]}, in {function}')
                place = ""
