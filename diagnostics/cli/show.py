"""`diagnose show`: prints a report again that was saved as JSON, in any format."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .rendering import add_rendering, write_report

DESCRIPTION = """\
Prints a JSON report again, as text or in another format. What a JSON report leaves out is not shown: the course of
the run and its charts.
"""


def add_to(commands: Any) -> None:
    """Add `show` to the subparsers of `diagnose`."""
    show = commands.add_parser("show", help="print a saved JSON report in another format", description=DESCRIPTION)
    show.add_argument("file", metavar="REPORT.json", type=Path, help="a JSON report of any command")
    add_rendering(show)
    show.set_defaults(command=_show)


def _show(options: argparse.Namespace) -> int:
    from diagnostics.report.saved import read_report

    report = read_report(options.file)
    write_report(options, report)
    return int(any(finding.severity != "note" for finding in report.findings))
