"""`diagnose join`: combines the reports of a job's ranks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .rendering import add_rendering

DESCRIPTION = """\
Combines the JSON reports of a job's ranks: compares what the ranks recorded, and prints one report with all
findings and the ranks that have them. Use it for ranks on several hosts, which `diagnose run` cannot compare while
they run: write a report on each rank, and copy the files into one folder.
"""
EPILOG = """\
For example: torchrun ... -m diagnostics run --output reports/report.json train.py; diagnose join reports
"""


def add_to(commands: Any) -> argparse.ArgumentParser:
    """Add `join` to the subparsers of `diagnose`, and return its parser."""
    join: argparse.ArgumentParser = commands.add_parser(
        "join", help="combine and compare the reports of a job's ranks", description=DESCRIPTION, epilog=EPILOG
    )
    join.add_argument("folder", metavar="FOLDER", type=Path, help="folder with the JSON reports of the ranks")
    add_rendering(join)
    return join
