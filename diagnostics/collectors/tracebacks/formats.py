"""Rewrites the tracebacks of IPython, Jupyter and Colab, of every age, and those of rich as Python prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .clean import START, Line

BLOCK = 20  # lines of source that IPython shows of one frame, at most

HEADING = re.compile(rf"^(?P<name>[A-Za-z_][\w.]*)(?: {{2,}}|(?<=Error) |(?<=Exception) ){re.escape(START)}")
_CELL = re.compile(
    r"^ {0,4}(?:Cell|Input) In ?\[(?P<cell>\d+)\](?:, line (?P<line>\d+))?(?:,? in (?P<function>.+))?$"
)
_FILE = re.compile(r"^(?P<plain>  )?File (?P<file>[^\s\"].*?):(?P<line>\d+)(?:,? in (?P<function>.+))?$")
_OLD = re.compile(  # before IPython 8, and in Colab: only the line at the arrow has a number
    r"^(?P<file><ipython-input-[^>]+>|<timed \w+>|(?:~|[A-Za-z]:)?[\\/.]\S.*?\.pyx?) in "
    r"(?P<function><[^>]*>|[\w.<>]+)(?:\(.*)?$"
)
_VSCODE = re.compile(  # counts the cells from the notebook's top, not as they were run
    r"^(?P<file>\S.*\.ipynb Cell \d+)(?: line (?P<line>\d+)|,? in (?P<function>.+))?$"
)
_PLACES = (_CELL, _FILE, _VSCODE, _OLD)
"""The line that names a frame's place."""
_ARROW = re.compile(r"^-+> ?(?P<line>\d+)(?: (?P<code>.*))?$")
_CONTEXT = re.compile(r"^ +\d+(?: .*)?$")
_TOP = re.compile(rf"[╭┌+][─-]{{2,}} .{{0,400}}{re.escape(START)}.{{0,400}} [─-]{{2,}}[╮┐+]\s*$")
_BOTTOM = re.compile(r"^\s*[╰└+][─-]{3,}[╯┘+]\s*$")
_ROW = re.compile(r"^\s*[│|] (?P<row>.*?) ?[│|]\s*$")
_PLACE = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+) in (?P<function>\S+)$")
_RICH_CELL = re.compile(r"^in (?P<function><[^>]+>|\S+):(?P<line>\d+)$")
_MARKED = re.compile(r"^[❱>] *\d+ [│|]? ?(?P<code>.*)$")


def rewritten(lines: list[Line]) -> list[Line]:
    """Bring tracebacks of another form into Python's own."""
    return _without_blocks(_without_boxes(lines))


def _without_blocks(lines: list[Line]) -> list[Line]:
    """Return the lines with each of IPython's frames as two of Python's; all others stay."""
    in_notebook = any(START in text and HEADING.match(text) for _, text in lines)
    found: list[Line] = []
    passed = 0
    for index, line in enumerate(lines):
        if index < passed:
            continue
        head = next((head for place in _PLACES if (head := place.match(line.text)) is not None), None)
        if head is None:
            found.append(line)
            continue
        arrow, length = _arrow(lines[index + 1 : index + 1 + BLOCK])
        named = head.groupdict()
        number = named.get("line") or (arrow and arrow["line"])
        sure = arrow is not None or in_notebook or "cell" in named or named.get("plain")
        if number is None or not sure:
            found.append(line)
            continue
        file = f"In[{named['cell']}]" if "cell" in named else named["file"]
        found.append(Line(line.number, f'  File "{file}", line {number}, in {_bare(named.get("function"))}'))
        if arrow is not None:
            found.append(Line(line.number, f"    {(arrow['code'] or '').strip()}"))
            passed = index + 1 + length
    return found


def _arrow(following: Sequence[Line]) -> tuple[re.Match[str] | None, int]:
    """Find the marked line in the source that follows, and count that source's lines."""
    arrow = None
    for length, (_, text) in enumerate(following):
        marked = _ARROW.match(text)
        if marked is None and not _CONTEXT.match(text):
            return arrow, length
        arrow = arrow or marked
    return arrow, len(following)


def _bare(function: str | None) -> str:
    """Return `step` of ``Trainer.step(self, batch)``, and ``<module>`` of a cell."""
    name = (function or "<module>").split("(")[0]
    return "<module>" if name.startswith("<cell line") else name.rpartition(".")[2]


def _without_boxes(lines: list[Line]) -> list[Line]:
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
        if not row or row[0] in "╭╰│┌└| ❱>":
            place = ""
            if marked := _MARKED.match(row):
                yield Line(number, f"    {marked['code'].strip('│ ')}")
        else:
            place += f" {row}" if place.endswith((" in", ":")) else row
            if found := _PLACE.match(place):
                yield Line(number, f'  File "{found["file"]}", line {found["line"]}, in {found["function"]}')
                place = ""
            elif found := _RICH_CELL.match(place):
                yield Line(number, f'  File "<cell>", line {found["line"]}, in {_bare(found["function"])}')
                place = ""
