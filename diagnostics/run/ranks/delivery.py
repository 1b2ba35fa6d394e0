"""Where the report of one rank goes, and what the last rank of a host prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from diagnostics.report.build import finished
from diagnostics.report.policy import Selection
from diagnostics.report.ranks import compared
from diagnostics.report.report import Report
from diagnostics.rules.registry import all_rules, causality_of
from diagnostics.run.options import RunOptions
from diagnostics.run.output import STANDARD_OUTPUT, Delivery, say

from .exchange import Exchange, Rank


class RankDelivery(Delivery):
    """Writes the report of one rank, and compares it with those of the other ranks where this one ends last."""

    def __init__(self, options: RunOptions, rank: Rank, exchange: Exchange) -> None:
        """Write nothing yet.

        Args:
            options: of the run.
            rank: of this process.
            exchange: with the other ranks.
        """
        super().__init__(options)
        self._rank, self._exchange = rank, exchange

    def deliver(self, report: Report) -> None:
        """See the class."""
        self.begun = True
        to_file = self._options.output is not None and self._options.output != STANDARD_OUTPUT
        if self._rank.number == 0 or to_file:
            self._write(report)
        elif report.crash is not None and self._exchange.is_first_to_crash():
            say(report)
        for line in self._exchange.leave(report, report.rank):
            say(f"diagnose: {line}")
        if len(self._exchange.notes) > 1:
            self.print_new(compared(self._exchange.notes), _told_by(report))

    def print_new(self, report: Report, known: Collection[str] = ()) -> None:
        """Print a report on several ranks, if it finds something that is not known."""
        findings = Selection(self._options.policy).kept(report.findings)
        kept = [finding for finding in findings if finding.rule not in known]
        if kept:
            say(finished(dataclasses.replace(report, findings=tuple(kept))))


def _told_by(report: Report) -> set[str]:
    """Return the rules that follow from what a report has found."""
    return {rule for finding in report.findings for rule in causality_of(all_rules()).consequences(finding.rule)}
