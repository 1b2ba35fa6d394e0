"""`diagnose join`: one report from those of a job's ranks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Joins the JSON reports of a job's ranks: compares what the ranks noted, and gives one report with the findings of
all, each with the ranks that have it. For ranks on several hosts, which diagnose run cannot compare while they
run: let each write its report, and copy the files into one folder.
"""
EPILOG = """\
torchrun ... -m diagnostics run --output reports/report.json train.py; diagnose join reports
"""


def add_to(commands: Any) -> argparse.ArgumentParser:
    """Add `join` to the subparsers of `diagnose`, and return its parser."""
    join: argparse.ArgumentParser = commands.add_parser(
        "join", help="compare the ranks of a job by their reports", description=DESCRIPTION, epilog=EPILOG
    )
    join.add_argument("folder", metavar="FOLDER", type=Path, help="with the JSON reports of the ranks")
    join.add_argument("--format", choices=("text", "json", "html", "markdown"), default="text")
    join.add_argument("--no-redact", action="store_true", help="keep folders, host names and data in Markdown")
    return join
