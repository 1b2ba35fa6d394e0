"""Runs a script in this interpreter as `python` would."""

from __future__ import annotations

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
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from .errors import InvalidInput
from .probes.frames import FROZEN

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended
_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
# What stands in a traceback between the interpreter and the script's first line.
_BEFORE = (__file__, "<frozen runpy>", runpy.__file__ or "")


@dataclass(frozen=True)
class Ending:
    """How a script ended.

    Attributes:
        exit_code: what `python` would have returned; 130 after Ctrl-C.
        error: the exception that ended it, with its traceback from the script's first line on, and without one if
            the script does not compile; None if it ended by itself, by `sys.exit` or by Ctrl-C.
        interrupted: whether Ctrl-C ended it.
        forked: whether this is a child that the script forked, and that has come to the script's end.
    """

    exit_code: int
    error: BaseException | None = None
    interrupted: bool = False
    forked: bool = False


class Script:
    """A program to be run: a file, a folder or a zip file with a `__main__.py`, or a module.

    Attributes:
        name: what to call it.
        command: what starts it, after `python`.
    """

    def __init__(self, target: str, arguments: list[str], *, module: bool = False) -> None:
        """Take what `python` would take, or `python -m` with `module`.

        Raises:
            InvalidInput: there is no such file.
        """
        self._target, self._arguments, self._module = target, arguments, module
        self.name = f"-m {target}" if module else target
        self.command = [*(["-m"] if module else []), target, *arguments]
        if not module:
            _check_file(target)

    def run(self, stopped: Callable[[], bool] = lambda: False) -> Ending:
        """Run it to its end. What ends it is printed as `python` prints it, and not raised.

        `sys.argv`, `sys.path` and `sys.modules["__main__"]` are the script's from then on. Threads that are no
        daemons are waited for.

        Args:
            stopped: says of a KeyboardInterrupt whether it was our own doing; then it is no failure.

        Raises:
            InvalidInput: there is no such module.
        """
        execute, process = self._prepare(), os.getpid()
        try:
            execute()
            _wait_for_threads()
        except SystemExit as leaving:
            return Ending(_code_of(leaving), forked=os.getpid() != process)
        except KeyboardInterrupt as interrupt:
            if stopped():
                return Ending(0)
            code = _print(interrupt, _of_the_script(interrupt))
            return Ending(INTERRUPTED if code is None else code, interrupted=True, forked=os.getpid() != process)
        except BaseException as error:
            trace = _of_the_script(error)
            code = _print(error, trace)
            return Ending(1 if code is None else code, error, forked=os.getpid() != process)
        return Ending(0, forked=os.getpid() != process)

    def _prepare(self) -> Callable[[], object]:
        """Set up the interpreter for the script, and return what runs it."""
        sys.argv = [self._target, *self._arguments]
        if self._module:
            _come_first(str(Path.cwd()))
            _check_module(self._target)
            return lambda: runpy.run_module(self._target, run_name="__main__", alter_sys=True)
        path = os.path.abspath(self._target)
        if os.path.isdir(path) or zipfile.is_zipfile(path):
            _come_first(path)
            return lambda: runpy.run_path(path, run_name="__main__")
        _come_first(os.path.dirname(os.path.realpath(path)))
        return lambda: _execute(path)


def _check_file(target: str) -> None:
    path = Path(target)
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise InvalidInput(f"{target} is a folder without a __main__.py. Name the script in it that trains.")
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
    try:
        spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        spec = None
    if spec is None:
        raise InvalidInput(f"there is no module {name!r}: python -m {name} would not find it either.")


def _come_first(folder: str) -> None:
    """Let the script's own folder be searched first for what it imports, unless Python was told not to."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _execute(path: str) -> None:
    main = ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__.update(__file__=path, __cached__=None, __loader__=loader)
    main.__dict__.update(__builtins__=__builtins__, __annotations__={})
    sys.modules["__main__"] = main  # where pickle, and processes that are started, look for it
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _code_of(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return int(leaving.code or 0)
    _flush(sys.stdout)
    print(leaving.code, file=sys.stderr)
    return 1


def _of_the_script(error: BaseException) -> TracebackType | None:
    """Take our own frames out of an exception and of those that led to it, and return what is left of its own."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        link.__traceback__ = _without_ours(link.__traceback__)
        link = link.__cause__ or link.__context__
    return error.__traceback__


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    first = trace
    while first is not None and (_file(first) in _BEFORE or _file(first) == FROZEN):
        first = first.tb_next
    before = first
    while before is not None and before.tb_next is not None:
        if _is_between(before.tb_next):
            before.tb_next = before.tb_next.tb_next
        else:
            before = before.tb_next
    return first


def _is_between(trace: TracebackType) -> bool:
    """Whether a frame is one of a hook's, or leads from the framework through this library and on."""
    if _file(trace) == FROZEN:
        return True
    inner: TracebackType | None = trace
    while inner is not None and _file(inner).startswith(_OURS):
        inner = inner.tb_next
    return inner is not None and inner is not trace


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _print(error: BaseException, trace: TracebackType | None) -> int | None:
    """Show what ended the script, by its own hook if it has set one; return an exit code if the hook sets one."""
    _flush(sys.stdout)
    hook: Callable[..., Any] = sys.excepthook
    try:
        hook(type(error), error, trace)
    except SystemExit as leaving:
        return _code_of(leaving)
    except BaseException as fault:
        _flush(sys.stderr)
        print("Error in sys.excepthook:", file=sys.stderr)
        if fault.__context__ is error:
            fault.__context__ = None  # it is told below
        sys.__excepthook__(type(fault), fault, _of_the_script(fault))
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)
    return None


def _flush(stream: Any) -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # replaced, closed, or nobody reads it
        stream.flush()
