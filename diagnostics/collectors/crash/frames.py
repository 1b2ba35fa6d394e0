"""Reads the frames of an exception, and their variables."""

from __future__ import annotations

import dis
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diagnostics.errors import InvalidInput, message_of
from diagnostics.facts.crash import CrashFacts, FrameFacts

_OURS = str(Path(__file__).resolve().parents[2]) + os.sep
_STANDARD = tuple(
    os.path.join(path, "") for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name))
)
_INSTALLED = re.compile(  # on any machine: a traceback may come from another
    r"^\.{3}[\\/](?:torch|torchvision|transformers|diffusers|accelerate|peft|trl|datasets|keras|tensorflow|lightning|deepspeed)"
    r"[\\/]"  # cut by hand
    r"|site-packages|dist-packages|^<(?:frozen|__array_function__|decorator-gen)|__autograph_generated_file"
    r"|[\\/]lib(?:64)?[\\/]python[23]|\\(?:python\d*|\w+conda\d*|miniforge\d*|envs\\[^\\]+)\\lib\\"
    r"|[\\/](?:bin|Scripts)[\\/](?:torchrun|accelerate(?:-launch)?|deepspeed|trl|lightning|fabric|axolotl|composer|swift"
    r"|transformers(?:-cli)?|llamafactory-cli|pytest|ray|papermill|ipython3?|jupyter[\w-]*)(?:$|\.exe)"
    r"|[\\/]unsloth_compiled_cache[\\/]"  # written by Unsloth beside the script
    r"|^(?![\\/~]|[A-Za-z]:).*\.(?:pyx|pxi|pxd)$",  # compiled with a package, which names it from its own folder
    re.IGNORECASE,
)
_OLD_CELL = re.compile(r"[<\\/]ipython-input-(?P<number>\d+)-\w+(?:>|\.py)$")


@dataclass(frozen=True)
class Crash:
    """A crash, with the variables of each of its frames; `variables` is empty if only the text is known.

    Attributes:
        log: all of the text that it was found in; what a device prints stands there, outside the traceback.
    """

    facts: CrashFacts
    variables: tuple[Mapping[str, Any], ...] = ()
    log: str = ""

    def inward(self, *functions: str) -> Iterator[Mapping[str, Any]]:
        """Yield the variables of the frames, innermost first; only of these functions if any are named."""
        for frame, variables in zip(reversed(self.facts.frames), reversed(self.variables), strict=False):
            if not functions or frame.function in functions:
                yield variables


def is_yours(file: str) -> bool:
    """Whether a file is the user's own: not installed, not standard library, not this library."""
    return not file.startswith((_OURS, *_STANDARD)) and _INSTALLED.search(file) is None


def shorten(file: str) -> str:
    """Shorten a path: from the package or the working directory on, or a notebook's cell."""
    if (cell := _cell(file)) is not None:
        return f"In[{cell}]"
    for marker in ("site-packages", "dist-packages"):
        if marker in file:
            return file.split(marker, 1)[1].lstrip("/\\").replace("\\", "/")
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def _cell(file: str) -> int | None:
    """Return the number of the notebook's cell that Python knows under this file name; None if it is none."""
    if (cell := _OLD_CELL.search(file)) is not None:
        return int(cell["number"])
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    names: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return names.get(file)


def is_ours(error: BaseException) -> bool:
    """Whether this library raised an exception, which then says nothing about the user's program.

    What it raises on purpose is about a call of the user's. A call that a wrapper of ours has passed on may fail
    in C, which leaves no frame: then the wrapper's is the innermost.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or isinstance(error, InvalidInput):
        return False
    code = trace.tb_frame.f_code
    if not code.co_filename.startswith(_OURS):
        return False
    failed = next((one for one in dis.get_instructions(code) if one.offset == trace.tb_lasti), None)
    return failed is None or failed.opname != "CALL_FUNCTION_EX"


def read_exception(error: BaseException) -> Crash:
    """Read a live exception. Holds on to the frames' variables only as long as the result lives."""
    frames, variables = [], []
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        code = linecache.getline(file, line, frame.f_globals).strip()
        frames.append(FrameFacts(shorten(file), line, frame.f_code.co_name, code or None, is_yours(file)))
        variables.append(dict(frame.f_locals))
    facts = CrashFacts(type(error).__name__, message_of(error), outside_dispatch(frames), live=True)
    return Crash(facts, tuple(variables))


def outside_dispatch(frames: Iterable[FrameFacts]) -> tuple[FrameFacts, ...]:
    """Treat frames within a tensor's dispatch as not the user's own: they are the work of a device."""
    found: list[FrameFacts] = []
    dispatched = False
    for frame in frames:
        dispatched = dispatched or frame.function in ("__torch_dispatch__", "__torch_function__")
        found.append(replace(frame, yours=False) if dispatched else frame)
    return tuple(found)


def within(outer: Crash, inner: Crash) -> Crash:
    """Return `inner`, its frames preceded by those of the exception raised from it, which led there, too."""
    facts = replace(inner.facts, frames=(*outer.facts.frames, *inner.facts.frames))
    return Crash(facts, (*outer.variables, *inner.variables), outer.log)
