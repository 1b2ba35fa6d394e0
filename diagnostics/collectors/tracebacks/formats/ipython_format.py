"""Rewrites the tracebacks of IPython, Jupyter and Colab, of every age, as Python prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..clean import START, Line

BLOCK = 20  # lines of source that IPython shows of one frame, at most

HEADING = re.compile(rf"^(?P<name>[A-Za-z_][\w.]*)(?: {{2,}}|(?<=Error) |(?<=Exception) ){re.escape(START)}")
_CELL = re.compile(
    r"^ {0,4}(?:Cell|Input) In ?\[(?P<cell>\d+)\](?:, line (?P<line>\d+))?(?:,? in (?P<function>.+))?$"
)
_FILE = re.compile(r"^(?P<plain>  )?File (?P<file>[^\s\"].*?):(?P<line>\d+)(?:,? in (?P<function>.+))?$")
_OLD = re.compile(  # before IPython 8, and in Colab: the line's number stands only at the arrow
    r"^(?P<file><ipython-input-[^>]+>|<timed \w+>|(?:~|[A-Za-z]:)?[\\/.]\S.*?\.pyx?) in "
    r"(?P<function><[^>]*>|[\w.<>]+)(?:\(.*)?$"
)
_VSCODE = re.compile(  # counts the cells from the notebook's top, not as they were run
    r"^(?P<file>\S.*\.ipynb Cell \d+)(?: line (?P<line>\d+)|,? in (?P<function>.+))?$"
)
_ARROW = re.compile(r"^-+> ?(?P<line>\d+)(?: (?P<code>.*))?$")
_CONTEXT = re.compile(r"^ +\d+(?: .*)?$")


def rewritten(lines: list[Line]) -> list[Line]:
    """Return the lines with each of IPython's frames as two of Python's; all others stay."""
    in_notebook = any(START in text and HEADING.match(text) for _, text in lines)
    found: list[Line] = []
    passed = 0
    for index, line in enumerate(lines):
        if index < passed:
            continue
        if START in line.text and HEADING.match(line.text):
            found.append(Line(line.number, f"{START}:"))
            continue
        head = _head(line.text)
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


def _head(text: str) -> re.Match[str] | None:
    """Match the line that names a frame's place."""
    if "In" in text and (cell := _CELL.match(text)):
        return cell
    if text.startswith(("File ", "  File ")):
        return _FILE.match(text)
    if ".ipynb Cell " in text:
        return _VSCODE.match(text)
    return _OLD.match(text) if " in " in text else None


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
