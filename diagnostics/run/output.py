"""Writes the report of `diagnose run` to a file or a stream, whatever the script has done to the streams."""

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
from diagnostics.config import FAIL_ON
from diagnostics.engine.finding import Finding
from diagnostics.facts.where import Where
from diagnostics.report.batch import BatchPicture
from diagnostics.report.contents import StageResult, severity_counts
from diagnostics.report.report import Report
from diagnostics.report.whole_file import write_whole

from .options import RunOptions

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


class Delivery:
    """Writes the report where the options say.

    Attributes:
        begun: whether the report is being written, or was.
        abrupt: whether the script has left by `os._exit`, which drops what it has printed and not flushed.
    """

    def __init__(self, options: RunOptions) -> None:
        """Write nothing yet."""
        self._options = options
        self.begun = self.abrupt = False

    def deliver(self, report: Report) -> None:
        """Write the report."""
        self.begun = True
        self._write(report)

    @property
    def file(self) -> Path | None:
        """The file for the report, if it is a regular one or not there yet."""
        output = self._options.output
        regular = output is not None and output != STANDARD_OUTPUT and (output.is_file() or not output.exists())
        return output if regular else None

    def keep(self, report: Report) -> None:
        """Write what is known so far to the file; the report replaces it.

        Raises:
            OSError: it cannot be written.
        """
        if self.file is not None and not self.begun:
            write_whole(self.file, report.rendered(self._options.kind, redact=self._options.redact) + "\n")

    def fails(self, report: Report) -> bool:
        """Whether the findings make the run fail, by the lowest severity that the options name."""
        if self._options.fail_on == "never":
            return False
        bad = FAIL_ON[: FAIL_ON.index(self._options.fail_on) + 1]
        return any(finding.severity in bad for finding in report.findings)

    def _write(self, report: Report) -> None:
        output, kind = self._options.output, self._options.kind
        quiet = self._options.quiet and not self.fails(report) and report.crash is None
        redact = self._options.redact
        if output == STANDARD_OUTPUT:
            if quiet or print_out(report.rendered(kind, redact=redact), after_the_scripts=not self.abrupt):
                return
            say("diagnose: cannot write to standard output.")
        elif output is not None:
            try:
                write_whole(output, report.rendered(kind, redact=redact) + "\n")
            except OSError as error:
                say(f"diagnose: {output} cannot be written: {error.strerror}.")
            else:
                if not quiet:
                    counts = ", ".join(severity_counts(report.findings))
                    say(f"diagnose: the report is in {output}{f' ({counts})' if counts else ''}")
                return
        if not quiet:
            say(report if kind in ("text", "html") else report.rendered(kind, redact=redact))
