"""What a script said before it ended: the exception of its traceback, and the metrics it printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diagnostics.facts.crash import CrashFacts, FrameFacts

_HEADER = "Traceback (most recent call last):"
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_METRIC = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf))")
_LIBRARY = re.compile(r".*[\\/]lib[\\/]python\d\.\d+[\\/](?:(?:site|dist)-packages[\\/])?")


def last_exception(stderr: str) -> CrashFacts | None:
    """Return the exception that ended the script whose standard error this is; None if none is there.

    Of a chain ("During handling of the above exception…") it is the last one that counts.
    """
    lines = []
    for line in COLOUR.sub("", stderr).split("\n"):
        # A progress bar may have been drawn just before the traceback, or just after the message.
        first, _, last = line.rstrip("\r").partition("\r")
        if line.startswith("Exception ignored in"):  # a destructor's, when the interpreter was going down
            break
        lines.append(_HEADER if last.endswith(_HEADER) or first.endswith(_HEADER) else first)
    if _HEADER not in lines:
        frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
        if not frames:
            return None  # what only looks like an exception is a warning
        lines.insert(frames[-1], _HEADER)  # a syntax error in the script itself is printed without one
    # It takes NumPy along, which most commands do without.
    from diagnostics.collectors.tracebacks.parse import failures

    found = failures("\n".join(lines))
    return found[-1].last if found else None


def metrics(stdout: str) -> dict[str, float]:
    """Return the last value of every `name=value` that stands on a line of its own."""
    lines = (line.strip() for line in COLOUR.sub("", stdout).splitlines())
    found = filter(None, map(_METRIC.fullmatch, lines))
    return {match["name"]: float(match["value"]) for match in found}


def short_path(file: str | Path, root: Path) -> str:
    """Return `file` as a person would write it: from the package on, or from the zoo's `root` on."""
    path, root = Path(file).resolve(), root.resolve()
    if path.is_relative_to(root) and path.exists():
        return path.relative_to(root).as_posix()
    return _LIBRARY.sub("", str(file)).replace("\\", "/")


def frame_in(script: Path, exception: CrashFacts) -> FrameFacts | None:
    """Return the innermost frame of `exception` that is in `script` itself; None if there is none."""
    inside = [frame for frame in exception.frames if Path(frame.file).resolve() == script.resolve()]
    return inside[-1] if inside else None
