"""The first line of a cell under `%%diagnose`, and the cell without it."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from diagnostics.errors import InvalidInput, message_of
from diagnostics.report.formats import KINDS

_FIRST_LINE = re.compile(r"%%diagnose(?:[ \t]+(?P<options>.*))?\s*")
HELP = """\
%%diagnose [NAME] [--ignore RULE[,RULE]] [--output FILE] [--verbose]

Run the cell unchanged, and show below its output what is wrong with its training. The cell's results, output and
exception are the same as without this line.

NAME       keep the report under this name
--ignore   rules to ignore in this cell
--output   also write the report to a file: .html, .md, .json or .txt
--verbose  show every stage and every rule that could not be checked
"""


@dataclass(frozen=True)
class CellOptions:
    """Options in the first line of the cell; see `HELP`.

    Attributes:
        name: a name for the report in the notebook; empty for none.
        ignores: ignored rules, with an empty reason.
        output: the file for the report.
        verbose: whether to show every stage and every rule that could not be checked.
    """

    name: str = ""
    ignores: dict[str, str] = field(default_factory=dict)
    output: Path | None = None
    verbose: bool = False


def transformed(lines: list[str]) -> list[str]:
    """Return a cell without the magic: its line becomes a comment, so that the numbers of the lines stay."""
    at = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines or (found := _FIRST_LINE.fullmatch(lines[at])) is None:
        return lines
    try:
        options_of(found["options"] or "")
    except InvalidInput:  # then the magic is called, which says it
        return lines
    rest = lines[at + 1 :]
    first = next((line for line in rest if line.strip()), "")
    if first.startswith("%%"):  # the magic of another, which must come first
        return rest
    indent = first[: len(first) - len(first.lstrip())] if first else ""
    return [*lines[:at], f"{indent}# {lines[at].strip()}\n", *rest]


def options_of_cell(cell: str) -> CellOptions | None:
    """Return what a cell asks for; None if it is not diagnosed. Other magics may stand before the line.

    Raises:
        InvalidInput: the options are wrong.
    """
    for line in cell.lstrip().splitlines():
        if (found := _FIRST_LINE.fullmatch(line)) is not None:
            return options_of(found["options"] or "")
        if not line.startswith("%%"):
            break
    return None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"%%diagnose: {message}. It takes: {HELP.partition(chr(10))[0]}")


def options_of(text: str) -> CellOptions:
    """Read what follows the name of the magic.

    Raises:
        InvalidInput: it is wrong.
    """
    parser = _Parser(prog="%%diagnose", add_help=False, allow_abbrev=False)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--ignore", default="")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--verbose", action="store_true")
    try:
        words = shlex.split(text, comments=True)
    except ValueError as wrong:
        raise InvalidInput(f"%%diagnose: {message_of(wrong)} in {text!r}.") from None
    given = parser.parse_args(words)
    if given.name and not given.name.isidentifier():
        raise InvalidInput(f"%%diagnose was given {given.name!r}, which is no name for a report.")
    if given.output is not None and given.output.suffix not in KINDS:
        raise InvalidInput(f"--output was given {given.output}; the name must end in {', '.join(KINDS)}.")
    if given.output is not None and not given.output.absolute().parent.is_dir():
        raise InvalidInput(f"--output was given {given.output}, but there is no folder {given.output.parent}.")
    ignores: dict[str, str] = {}
    if given.ignore:  # to know the names of all rules takes a second
        from diagnostics.config import from_option

        ignores = from_option(given.ignore)
    return CellOptions(given.name, ignores, given.output, given.verbose)
