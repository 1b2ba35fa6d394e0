"""Rewrites what VS Code shows where a program stopped as Python prints it.

    Exception has occurred: KeyError       (note: full exception trace is shown but ...)
    'model_state_dict'
      File "/home/ada/trainer.py", line 123, in load
        model.load_state_dict(checkpoint["model_state_dict"])
      File "/home/ada/train.py", line 30, in <module>

The exception stands first, its message on lines of its own, and the frames follow, the innermost first.
"""

from __future__ import annotations

import re

from ..clean import START, Line

_HEAD = re.compile(r"^\W{0,4}Exception has occurred: (?P<name>[\w.]{1,99})\s*(?:\(note:.*)?$")
_FRAME = re.compile(r'^\s*File "')
_MOST_LINES = 40  # of a message


def rewritten(lines: list[Line]) -> list[Line]:
    """Return the lines with every exception that the editor stopped at as a traceback; all others stay."""
    heads = [
        n for n, line in enumerate(lines) if "Exception has occurred:" in line.text and _HEAD.match(line.text)
    ]
    for head in reversed(heads):
        lines = [*lines[:head], *_traceback(lines[head:])]
    return lines


def _traceback(lines: list[Line]) -> list[Line]:
    """Rewrite lines that begin with the editor's head; unchanged if no frame follows."""
    first = next((n for n, line in enumerate(lines[:_MOST_LINES]) if _FRAME.match(line.text)), None)
    head = _HEAD.match(lines[0].text)
    if first is None or head is None:
        return lines
    frames: list[list[Line]] = []
    end = first
    for line in lines[first:]:
        if _FRAME.match(line.text):
            frames.append([line])
        elif line.text.startswith("    "):
            frames[-1].append(line)
        else:
            break
        end += 1
    if "in <module>" not in frames[0][0].text:  # else they stand as Python prints them
        frames.reverse()
    said = lines[1:first]
    message = Line(lines[0].number, f"{head['name']}: {said[0].text.strip() if said else ''}")
    start = Line(lines[0].number, f"{START}:")
    after = Line(lines[end - 1].number, "")
    return [start, *(line for frame in frames for line in frame), message, *said[1:], after, *lines[end:]]
