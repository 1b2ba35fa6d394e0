"""`diagnose diff`: names what differs between two runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from .rendering import add_format, write

DESCRIPTION = """\
Compares the JSON reports of two runs, as `diagnose run --output report.json train.py` writes them: versions,
settings, seeds, initial weights, rows and their order, the first step whose loss differs, results, and findings.
They are listed in this order, because what is earlier may cause what is later. Weights, rows and the states of
random generators are compared by hashes. No file of yours is read.
"""
EPILOG = "Exit codes: 0 no difference, 1 differences, 2 invalid arguments."
FORMATS: Final = ("text", "json", "markdown")


def add_to(commands: Any) -> None:
    """Add `diff` to the subparsers of `diagnose`."""
    diff = commands.add_parser(
        "diff", help="name what differs between two runs", description=DESCRIPTION, epilog=EPILOG
    )
    diff.add_argument("first", metavar="A.json", type=Path, help="the JSON report of one run")
    diff.add_argument("second", metavar="B.json", type=Path, help="that of the other")
    add_format(diff, FORMATS)
    diff.set_defaults(command=_diff)


def _diff(options: argparse.Namespace) -> int:
    from diagnostics.report.diff import diff_reports

    found = diff_reports(options.first, options.second)
    write(options, found.rendered, str(found), FORMATS)
    return int(bool(found.differences))
