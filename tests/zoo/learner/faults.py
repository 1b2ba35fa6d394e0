"""Makes the n-th access to a folder fail, as a full disk does, or ends the program there, as a kill does."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bugs.__main__ import ENDING_SIGNALS, main

NAMED = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")  # os.rename: of os.replace as well
_OPEN, _FSYNC = io.open, os.fsync


class Killed(BaseException):
    """The end of a process; what would have cleaned up fails with it, too."""


class Faults:
    """Counts what is done in a folder, and lets one access fail.

    Args:
        root: the folder.
        at: the number of the access, from 1.
        error: what it fails with, an errno; None: the program is killed.
        lasting: whether all later ones fail as well, as on a full disk.
    """

    def __init__(self, root: Path, at: int, error: int | None, *, lasting: bool = False) -> None:
        self.root, self.at, self.error, self.lasting = str(root), at, error, lasting
        self.count = 0

    @property
    def happened(self) -> bool:
        """Whether there were enough accesses."""
        return self.count >= self.at

    def step(self, path: Any, *, named: bool = True) -> None:
        """Fail if it is time; a write and a sync, unlike others, say of no file that it was theirs."""
        killed = self.error is None and self.happened
        if isinstance(path, str) and os.path.isabs(path) and not path.startswith(self.root) and not killed:
            return
        self.count += 1
        if self.error is None and self.happened:
            raise Killed
        if self.error is not None and (self.count == self.at or (self.happened and self.lasting)):
            raise OSError(self.error, os.strerror(self.error), *([path] if named else []))


_faults: Faults | None = None


class _Disk(io.FileIO):
    def write(self, data: Any) -> int:
        if _faults is not None:
            _faults.step(self.name, named=False)
        return super().write(data)


def _opened(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
    if isinstance(file, int) or not set(mode) & set("wax+"):
        return _OPEN(file, mode, *more, **options)
    buffer = io.BufferedWriter(_Disk(os.fspath(file), mode.replace("b", "").replace("t", "")))
    wanted = {name: options[name] for name in ("encoding", "errors", "newline") if name in options}
    return buffer if "b" in mode else io.TextIOWrapper(buffer, **{"encoding": "utf-8"} | wanted)


def _synced(file: int) -> None:
    if _faults is not None:
        _faults.step(None, named=False)
    _FSYNC(file)


def _hook(event: str, values: tuple[Any, ...]) -> None:
    if _faults is not None and event in NAMED and isinstance(values[0], str | os.PathLike):
        _faults.step(os.fspath(values[0]))


sys.addaudithook(_hook)  # which nothing can take away again; it does nothing outside of `injected`


@contextlib.contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """Within, the faults happen."""
    global _faults
    _faults, before = faults, (builtins.open, io.open, os.fsync)
    builtins.open, io.open, os.fsync = _opened, _opened, _synced  # type: ignore[assignment]
    try:
        yield
    finally:
        _faults = None
        builtins.open, io.open, os.fsync = before


def bugs(root: Path, *arguments: str) -> int:
    """Run `python -m bugs` in this process, and leave its signals alone."""
    before = {name: signal.getsignal(getattr(signal, name)) for name in ENDING_SIGNALS if hasattr(signal, name)}
    try:
        return main(["--root", str(root), *arguments])
    except SystemExit as error:
        return int(error.code or 0)
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
