"""Options that several commands have: `--format`, `--output`, `--no-redact`, and seconds."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnostics.errors import InvalidInput
from diagnostics.report.formats import FORMATS, KINDS
from diagnostics.report.whole_file import write_whole

if TYPE_CHECKING:
    from diagnostics.report.report import Report


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    """Add the options to print in a format, or to write to a file."""
    parser.add_argument(
        "--format", choices=formats, help="format of the output (default: from the name of FILE, otherwise text)"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="write to FILE instead of standard output")


def add_rendering(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that prints a report."""
    add_format(parser, FORMATS)
    parser.add_argument(
        "--no-redact", action="store_true", help="do not redact folders, host names, secrets and data in Markdown"
    )


def format_of(options: argparse.Namespace, formats: Sequence[str] = FORMATS) -> str:
    """Return the format that was chosen, or the one that the file name implies."""
    named = "text" if options.output is None else KINDS.get(options.output.suffix, "text")
    return str(options.format or (named if named in formats else "text"))


def write(options: argparse.Namespace, rendered: Callable[[str], str], shown: Any, formats: Sequence[str]) -> None:
    """Write to the file that was chosen, or print.

    Args:
        options: of the command.
        rendered: renders in a format.
        shown: the text: a string, or what rich prints in colours.
        formats: of the command.

    Raises:
        InvalidInput: the file cannot be written.
    """
    kind = format_of(options, formats)
    if options.output is not None:
        try:
            write_whole(options.output, rendered(kind) + "\n")
        except OSError as error:
            raise InvalidInput(f"{options.output} cannot be written: {error.strerror}.") from None
        print(f"diagnose: the output is in {options.output}", file=sys.stderr)
    elif kind == "text" and not isinstance(shown, str):
        from rich.console import Console

        Console(highlight=False).print(shown)
    else:
        print(rendered(kind))


def write_report(options: argparse.Namespace, report: Report) -> None:
    """Write a report; see `write`."""
    write(options, lambda kind: report.rendered(kind, redact=not options.no_redact), report, FORMATS)


def seconds(text: str) -> float:
    """Return the number of seconds that an argument gives."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return given
