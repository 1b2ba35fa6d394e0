"""Where the report of a run goes: a file, standard output or standard error, and what the other ranks print."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from diagnostics.report.build import finished
from diagnostics.report.ranks import compared
from diagnostics.report.report import Report
from diagnostics.report.whole_file import write_whole
from diagnostics.rules.registry import all_rules, causality_of

from .output import STANDARD_OUTPUT, print_out, say
from .ranks.exchange import Exchange

if TYPE_CHECKING:
    from .session import RunOptions

FAIL_ON = ("error", "warning", "never")


class Delivery:
    """Writes the report where the options say.

    Attributes:
        begun: whether the report is being written, or was.
        abrupt: whether the script has left by `os._exit`, which drops what it has printed and not flushed.
    """

    def __init__(self, options: RunOptions, ranks: Exchange | None) -> None:
        """Write nothing yet; `ranks`: what is shared with the other ranks, None without a launcher."""
        self._options, self._ranks = options, ranks
        self.begun = self.abrupt = False

    def deliver(self, report: Report) -> None:
        """Write the report, and compare it with those of the other ranks where this one ends last."""
        self.begun = True
        if self._ranks is None or self._options.rank is None or self._options.rank.number == 0:
            self._write(report)
        else:
            if self._options.output is not None and self._options.output != STANDARD_OUTPUT:
                self._write(report)
            elif report.crash is not None and self._ranks.is_first_to_crash():
                say(report)
        if self._ranks is None:
            return
        for line in self._ranks.leave(report, report.rank):
            say(f"diagnose: {line}")
        if len(self._ranks.notes) > 1:
            self.print_new(compared(self._ranks.notes), _told_by(report))

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

    def print_new(self, report: Report, known: Collection[str] = ()) -> None:
        """Print a report on several ranks, if it finds something that is not known."""
        ignored = {*self._options.ignores, *known}
        kept = [finding for finding in report.findings if finding.rule not in ignored]
        if kept:
            say(finished(dataclasses.replace(report, findings=tuple(kept))))

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
                    say(f"diagnose: the report is in {output}")
                return
        if not quiet:
            say(report if kind == "text" else report.rendered(kind, redact=redact))


def _told_by(report: Report) -> set[str]:
    """Return the rules that follow from what a report has found."""
    return {rule for finding in report.findings for rule in causality_of(all_rules()).consequences(finding.rule)}
