"""`%load_ext diagnostics`: the cell magic `%%diagnose`, for a cell that trains."""

from __future__ import annotations

import argparse
import importlib
import random
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from diagnostics.errors import InvalidInput, message_of
from diagnostics.report.report import KINDS

if TYPE_CHECKING:
    from .cell import CellSession

_FIRST_LINE = re.compile(r"%%diagnose(?:[ \t]+(?P<options>.*))?\s*")
_LOADED = "_diagnostics_magic"  # attribute of the shell
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


class DiagnoseMagic:
    """The magic of one IPython shell.

    IPython runs the cell itself, with the first line turned into a comment. So the cell's output, its `await`,
    the lines of its traceback, and whether "run all" continues after it are the same as without the magic.
    """

    def __init__(self, shell: Any) -> None:
        """Add the magic to a shell: an `IPython.core.interactiveshell.InteractiveShell`."""
        self._shell, self._session = shell, None
        before = random.getstate()  # which the import of rich draws from
        try:
            from diagnostics.run.output import rehearse

            from . import cell as cell

            rehearse("html")
        finally:
            random.setstate(before)
        shell.input_transformers_cleanup.insert(0, self._transform)
        shell.register_magic_function(self._call, "cell", "diagnose")
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    _session: CellSession | None

    def remove(self) -> None:
        """Remove it from the shell."""
        self._shell.input_transformers_cleanup.remove(self._transform)
        self._shell.magics_manager.magics["cell"].pop("diagnose", None)
        self._shell.events.unregister("pre_run_cell", self._begin)
        self._shell.events.unregister("post_run_cell", self._end)
        if self._session is not None:
            self._session.close()

    def _transform(self, lines: list[str]) -> list[str]:
        return transformed(lines)

    def _begin(self, info: Any) -> None:
        if self._session is not None:  # a cell within the cell
            return
        try:
            options = options_of_cell(info.raw_cell)
        except InvalidInput:  # which `_call` says
            return
        if options is not None:
            from .cell import CellSession

            try:
                count = self._shell.execution_count - bool(info.store_history)  # it has moved on already
                self._session = CellSession(self._shell, info.raw_cell, count, options)
            except Exception as fault:
                _say(f"observing this cell failed: {type(fault).__name__}: {message_of(fault)}")

    def _end(self, result: Any) -> None:
        session = self._session
        if session is None or (result is not None and result.info.raw_cell != session.cell):
            return
        self._session = None
        try:
            session.conclude(result)
        except KeyboardInterrupt:
            _say("interrupted; the cell itself had ended.")
        except Exception as fault:  # its cell has run, and must not fail for that
            _say(f"making the report failed: {type(fault).__name__}: {message_of(fault)}")
        finally:
            session.close()

    def _call(self, line: str, cell: str = "") -> None:
        try:
            _options(line)
        except InvalidInput as wrong:
            raise importlib.import_module("IPython.core.error").UsageError(str(wrong)) from None
        self._shell.run_cell(f"%%diagnose {line}\n{cell}")  # called as a function

    _call.__doc__ = HELP


def load(shell: Any) -> None:
    """Add `%%diagnose` to an IPython shell, once."""
    if getattr(shell, _LOADED, None) is None:
        setattr(shell, _LOADED, DiagnoseMagic(shell))


def unload(shell: Any) -> None:
    """Remove `%%diagnose` from an IPython shell."""
    magic = getattr(shell, _LOADED, None)
    if magic is not None:
        magic.remove()
        delattr(shell, _LOADED)


def transformed(lines: list[str]) -> list[str]:
    """Return a cell without the magic: its line becomes a comment, so that the numbers of the lines stay."""
    at = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines or (found := _FIRST_LINE.fullmatch(lines[at])) is None:
        return lines
    try:
        _options(found["options"] or "")
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
            return _options(found["options"] or "")
        if not line.startswith("%%"):
            break
    return None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"%%diagnose: {message}. It takes: {HELP.partition(chr(10))[0]}")


def _options(text: str) -> CellOptions:
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


def _say(what: str) -> None:
    print(f"diagnose: {what}", file=sys.stderr)
