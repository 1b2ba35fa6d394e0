"""Writes the report of `diagnose run`, whatever the script has done to the streams."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy.ma  # noqa: F401  np.median imports it when it is first called
from rich.console import Console

from diagnostics.api import watch_report  # noqa: F401  imported before the script starts, as all of this
from diagnostics.api.explain import explain
from diagnostics.collectors.crash.messages.table import all_messages
from diagnostics.collectors.tracebacks import nature  # noqa: F401
from diagnostics.engine.finding import Finding
from diagnostics.facts.where import Where
from diagnostics.report.batch import BatchPicture
from diagnostics.report.contents import StageResult
from diagnostics.report.report import Report

STANDARD_OUTPUT = Path("-")


def say(what: str | Report | BatchPicture) -> None:
    """Print to the standard error that the process was started with, if it is still open.

    `sys.stderr` may be a file of the script. The script may have closed both, or `| head` the pipe.
    """
    stream = sys.__stderr__
    if stream is None:
        return
    with contextlib.suppress(Exception, SystemExit):  # SystemExit is what rich makes of a closed pipe
        if isinstance(what, str):
            print(what, file=_Escaping(stream), flush=True)
            return
        console = Console(file=_Escaping(stream), stderr=True, highlight=False)  # type: ignore[arg-type]
        console.print()
        console.print(what)


def print_out(text: str, *, after_the_scripts: bool = True) -> bool:
    """Print to the standard output that the process was started with, after the script's own output.

    Nothing is left in a buffer: a failed flush at the interpreter's end would change the exit code.

    Args:
        text: to print.
        after_the_scripts: whether what the script has printed is written first; `os._exit` would have dropped it.

    Returns:
        Whether it can be written to. A closed pipe is not a failure.
    """
    stream = sys.__stdout__
    try:
        if after_the_scripts:
            with contextlib.suppress(Exception):  # one of the script's own, whatever it is
                sys.stdout.flush()
            stream.flush()  # type: ignore[union-attr]
        descriptor, encoding = stream.fileno(), stream.encoding  # type: ignore[union-attr]
        data = f"{text}\n".encode(encoding, "backslashreplace")
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        return True
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed
        return False
    return True


def rehearse(kind: str) -> None:
    """Render a report with all parts, so that every module is imported before the script runs.

    Afterwards `sys.path` may lead to the script's modules, or nowhere.
    """
    known = next(row for row in all_messages() if row.cause and not row.within).examples[0]
    try:
        raise RuntimeError(known)
    except RuntimeError as error:
        crash = explain(error).crash
    finding = Finding("rehearsal", "note", "data", "message", "fix", where=Where(__file__, 1, "rehearse"))
    report = Report("rehearsal", (finding,), (StageResult("data", "passed"),), crash=crash, faults=("none",))
    # In a notebook rich would show it.
    Console(file=io.StringIO(), force_terminal=True, force_jupyter=False, highlight=False).print(report)
    for each in {"text", kind}:
        report.rendered(each)


class _Escaping:
    """A stream that escapes characters that its encoding lacks, where the stream itself would raise."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            return int(self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
