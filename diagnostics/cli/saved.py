"""`diagnose show`, `join` and `diff`: commands for the JSON reports of earlier runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from .rendering import add_format, add_rendering, write, write_report

SHOW = """\
Prints a JSON report again, as text or in another format. A JSON report contains neither the history of the run
nor its charts, so these are not shown.
"""
JOIN = """\
Combines the JSON reports of a job's ranks: compares what the ranks recorded, and prints one report with all
findings and the ranks that have them. Use it for ranks on several hosts, which `diagnose run` cannot compare while
they run: write a report on each rank, and copy the files into one folder.
"""
JOIN_EXAMPLE = """\
For example: torchrun ... -m diagnostics run --output reports/report.json train.py; diagnose join reports
"""
DIFF = """\
Compares the JSON reports of two runs, as `diagnose run --output report.json train.py` writes them: versions,
settings, seeds, initial weights, rows and their order, the first step whose loss differs, results, and findings.
The differences are listed in this order, because an earlier one may cause a later one. Weights, rows and the
states of random generators are compared by hashes. None of your files are read.
"""
DIFF_CODES = "Exit codes: 0 no difference, 1 differences, 2 invalid arguments."
DIFF_FORMATS: Final = ("text", "json", "markdown")


def add_join(commands: Any) -> argparse.ArgumentParser:
    """Add `join` to the subparsers of `diagnose`, and return its parser."""
    join: argparse.ArgumentParser = commands.add_parser(
        "join", help="combine and compare the reports of a job's ranks", description=JOIN, epilog=JOIN_EXAMPLE
    )
    join.add_argument("folder", metavar="FOLDER", type=Path, help="folder with the JSON reports of the ranks")
    add_rendering(join)
    return join


def add_diff(commands: Any) -> None:
    """Add `diff` to the subparsers of `diagnose`."""
    diff = commands.add_parser(
        "diff", help="name what differs between two runs", description=DIFF, epilog=DIFF_CODES
    )
    diff.add_argument("first", metavar="A.json", type=Path, help="the JSON report of one run")
    diff.add_argument("second", metavar="B.json", type=Path, help="the JSON report of the other run")
    add_format(diff, DIFF_FORMATS)
    diff.set_defaults(command=_diff)


def add_show(commands: Any) -> None:
    """Add `show` to the subparsers of `diagnose`."""
    show = commands.add_parser("show", help="print a saved JSON report in another format", description=SHOW)
    show.add_argument("file", metavar="REPORT.json", type=Path, help="a JSON report from any command")
    add_rendering(show)
    show.set_defaults(command=_show)


def _diff(options: argparse.Namespace) -> int:
    from diagnostics.report.diff import diff_reports

    found = diff_reports(options.first, options.second)
    write(options, found.rendered, str(found), DIFF_FORMATS)
    return int(bool(found.differences))


def _show(options: argparse.Namespace) -> int:
    from diagnostics.report.saved import read_report

    report = read_report(options.file)
    write_report(options, report)
    return int(any(finding.severity != "note" for finding in report.findings))
