"""Runs a script in this interpreter as `python` would."""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import runpy
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any, NoReturn

from diagnostics.errors import InvalidInput
from diagnostics.launch import come_first

from .library_frames import without_library_frames

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended


@dataclass(frozen=True)
class Ending:
    """How a script ended.

    Attributes:
        exit_code: that `python` would have returned; 130 after Ctrl-C.
        error: the exception that ended it, with its traceback from the script's first line on, and without one if
            the script does not compile; None if it ended by itself, by `sys.exit` or by Ctrl-C.
        interrupted: whether Ctrl-C ended it.
        forked: whether this is a child that the script forked, at the script's end.
        abrupt: whether nothing but the report comes after it: `os._exit`, or SIGTERM.
    """

    exit_code: int
    error: BaseException | None = None
    interrupted: bool = False
    forked: bool = False
    abrupt: bool = False


class Script:
    """A program to be run: a file, a folder or a zip file with a `__main__.py`, or a module.

    Attributes:
        name: for titles and messages.
        command: the arguments that start it, after `python`.
        folder: the folder or zip file that its imports search first; None with `python -P`.
    """

    def __init__(self, target: str, arguments: list[str], *, module: bool = False) -> None:
        """Take the same target as `python`, or with `module` as `python -m`.

        Raises:
            InvalidInput: there is no such file.
        """
        self._target, self._arguments, self._module = target, arguments, module
        self._path = os.path.join(working_folder(), target)  # not normalized, as `__file__` by `python`
        self.name = f"-m {target}" if module else target
        self.command = [*(["-m"] if module else []), target, *arguments]
        if not module:
            _check_file(target)
        self._runs_as_module = module or os.path.isdir(self._path) or zipfile.is_zipfile(self._path)
        self.folder = None if sys.flags.safe_path and not self._is_container else self._first_folder()

    @property
    def _is_container(self) -> bool:
        return self._runs_as_module and not self._module

    @property
    def file(self) -> str | None:
        """The file that is run; None for a module, a folder or a zip file."""
        return None if self._runs_as_module else self._path

    def _first_folder(self) -> str | None:
        if self._module:
            return working_folder() or None
        return self._path if self._runs_as_module else os.path.dirname(os.path.realpath(self._path))

    def run(
        self, stopped: Callable[[], bool] = lambda: False, failing: Callable[[], object] = lambda: None
    ) -> Ending:
        """Run it to its end. An exception that ends it is printed as by `python`, and not raised.

        `sys.argv`, `sys.path` and `sys.modules["__main__"]` are the script's from then on. Non-daemon threads are
        joined.

        Args:
            stopped: whether a KeyboardInterrupt came from a limit; then it is not a failure.
            failing: is called before an exception that ends the script is printed.

        Raises:
            InvalidInput: there is no such module.
        """
        main, process = _new_main(), os.getpid()
        ending = _ending_of(self._prepare(main), stopped, failing)
        if not self._runs_as_module:  # as `python` does when a file has run
            main.pop("__file__", None)
            main.pop("__cached__", None)
        if os.getpid() != process:
            return replace(ending, forked=True)
        if not (ending.exit_code == 0 and stopped()):
            _shut_down_threads()
        return ending

    def _prepare(self, main: dict[str, Any]) -> Callable[[], object]:
        """Set up the interpreter for the script, and return what runs it."""
        if self.folder is not None:
            come_first(self.folder)
        if self._module:
            _check_module(self._target)
        sys.argv = ["-m" if self._module else self._target, *self._arguments]
        if self._module:  # what the interpreter itself calls for -m, a folder and a zip file
            return lambda: runpy._run_module_as_main(self._target)  # type: ignore[attr-defined]
        if self._runs_as_module:
            return lambda: runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
        return lambda: _execute(self._path, main)


def working_folder() -> str:
    """Return the working directory; empty if it was removed, which does not prevent `python` from running."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _check_file(target: str) -> None:
    path = Path(target)
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise InvalidInput(f"{target} is a folder without a __main__.py. Pass the training script in it.")
    elif not path.exists():
        near = [p.name for p in sorted(path.parent.glob("*.py"))[:5]] if path.parent.is_dir() else []
        hint = f" In that folder: {', '.join(near)}." if near else ""
        raise InvalidInput(f"there is no script {target}.{hint}")
    else:
        try:
            path.open("rb").close()
        except OSError as error:
            raise InvalidInput(f"{target} cannot be read: {error.strerror}.") from None


def _check_module(name: str) -> None:
    """Look for a module, or only for its package: importing that is part of the script's run."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ModuleNotFoundError, ValueError):
        spec = None
    if spec is None:
        raise InvalidInput(f"there is no module {name!r}: python -m {name} would not find it either.")


def _new_main() -> dict[str, Any]:
    """Make the script's `__main__`, with the attributes, in their order, that an interpreter starts with."""
    main = ModuleType("__main__")
    main.__dict__.update(__loader__=importlib.machinery.BuiltinImporter, __annotations__={}, __builtins__=builtins)
    sys.modules["__main__"] = main  # where pickle, and processes that are started, look for it
    return main.__dict__


def _execute(path: str, main: dict[str, Any]) -> None:
    compiled = path.endswith(".pyc")
    kind = importlib.machinery.SourcelessFileLoader if compiled else importlib.machinery.SourceFileLoader
    loader = kind("__main__", path)
    main.update(__file__=path, __cached__=None, __loader__=loader)
    if compiled:
        exec(loader.get_code("__main__") or "", main)
        return
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main)


def _ending_of(
    execute: Callable[[], object], stopped: Callable[[], bool], failing: Callable[[], object]
) -> Ending:
    try:
        execute()
    except SystemExit as leaving:
        return Ending(_code_of(leaving))
    except KeyboardInterrupt as interrupt:
        if stopped():
            return Ending(0)
        code = _print(interrupt, without_library_frames(interrupt))
        return Ending(INTERRUPTED if code is None else code, interrupted=code is None)
    except BaseException as error:
        failing()
        code = _print(error, without_library_frames(error))
        return Ending(1 if code is None else code, error)
    return Ending(0)


def _shut_down_threads() -> None:
    """Do what the interpreter does first at its end: call threading's exit functions, and wait for threads.

    `concurrent.futures` ends its workers in such an exit function, so waiting without it never ends. The
    interpreter calls the same function once more, which then does nothing.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException as error:  # of an exit function, or Ctrl-C; the interpreter ignores it likewise
        trace = without_library_frames(error)
        if sys.unraisablehook is not sys.__unraisablehook__:
            unraisable = SimpleNamespace(
                exc_type=type(error), exc_value=error, exc_traceback=trace, err_msg=None, object=threading
            )
            with contextlib.suppress(BaseException):
                sys.unraisablehook(unraisable)
            return
        with contextlib.suppress(BaseException):
            print(f"Exception ignored in: {threading!r}", file=sys.stderr)
            sys.__excepthook__(type(error), error, trace)


def end_by_interrupt() -> NoReturn:
    """End this process as `python` ends after Ctrl-C: by SIGINT itself, once everything else has come to its end.

    The interpreter does that for a KeyboardInterrupt that nobody catches. The traceback has been printed.
    """
    shown = sys.excepthook

    def silent(*_: object) -> None:
        sys.excepthook = shown

    sys.excepthook = silent
    raise KeyboardInterrupt


def _code_of(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return int(leaving.code or 0)
    _flush(sys.stdout)
    try:
        text = str(leaving.code)
    except BaseException:
        text = ""
    with contextlib.suppress(Exception):
        print(text, file=sys.stderr)
    return 1


def _print(error: BaseException, trace: TracebackType | None) -> int | None:
    """Print the exception that ended the script, by its own hook if it has one; return the hook's exit code."""
    _flush(sys.stdout)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook: Callable[..., Any] = getattr(sys, "excepthook", sys.__excepthook__)
    try:
        hook(type(error), error, trace)
    except SystemExit as leaving:
        return _code_of(leaving)
    except BaseException as fault:
        _flush(sys.stderr)
        print("Error in sys.excepthook:", file=sys.stderr)
        if fault.__context__ is error:
            fault.__context__ = None  # it is printed below
        sys.__excepthook__(type(fault), fault, without_library_frames(fault))
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)
    return None


def _flush(stream: Any) -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # replaced, closed, or nobody reads it
        stream.flush()
