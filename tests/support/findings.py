"""What a report found, causes and what follows from them alike."""

from collections.abc import Iterator

from diagnostics.engine.finding import Finding
from diagnostics.report.report import Report


def all_findings(report: Report) -> Iterator[Finding]:
    """Yield each finding, and after it those that are listed under it."""
    for finding in report.findings:
        yield finding
        yield from finding.consequences


def all_rules_of(report: Report) -> list[str]:
    """Name the rules of all findings, in the same order."""
    return [finding.rule for finding in all_findings(report)]
