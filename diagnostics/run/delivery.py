"""Where the report of a run goes: a file, standard output or standard error."""

from __future__ import annotations

from pathlib import Path

from diagnostics.config import FAIL_ON
from diagnostics.report.contents import severity_counts
from diagnostics.report.report import Report
from diagnostics.report.whole_file import write_whole

from .options import RunOptions
from .output import STANDARD_OUTPUT, print_out, say


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
