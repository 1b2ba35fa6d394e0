"""`%load_ext diagnostics`: the cell magic `%%diagnose`, for a cell that trains."""

from __future__ import annotations

import importlib
import random
import sys
from typing import TYPE_CHECKING, Any

from diagnostics.errors import InvalidInput, message_of

from .cell_options import HELP, options_of, options_of_cell, transformed

if TYPE_CHECKING:
    from .cell import CellSession

_LOADED = "_diagnostics_magic"  # attribute of the shell


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
            options_of(line)
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


def _say(what: str) -> None:
    print(f"diagnose: {what}", file=sys.stderr)
