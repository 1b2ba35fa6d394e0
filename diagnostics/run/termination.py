"""Lets the report be written however a script ends: by SIGTERM, by `os._exit`, or because no memory is left."""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import faulthandler
import mmap
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.patching import Patches

_current_handler: Callable[[int], Any] = vars(signal)["_signal"].getsignal  # as it is, not as an enum
_set_handler: Callable[[int, Any], Any] = vars(signal)["_signal"].signal  # `signal.signal` makes an int of it
GRACE_S = 20.0  # for the report; torchrun sends SIGKILL 30 s after SIGTERM
OWN_FILES_FROM = 100  # number of a file descriptor; most systems allow 1,024
STUCK_S = 2.0  # within which the main thread comes to its next line, unless it waits in C for what never comes
EXIT_GRACE_S = 20.0  # for the report: a watchdog of the script calls `os._exit` while another thread holds a lock

SIZE = 64 << 20  # bytes; with NumPy's buffer, 64 MiB were enough to explain a failure and write the report, 32 not


class _LooksLikeDefault(int):
    """A handler that the module `signal` shows as SIG_DFL: it turns what it knows by its number into its enum.

    `getsignal` and `signal` hand a handler that is an int to `signal.Handlers`, which finds SIG_DFL for 0; CPython
    itself takes only a plain int for SIG_DFL and calls this one. A script that puts back what it was given ends by
    SIGTERM at once, as under `python`.
    """

    def __new__(cls, then: Callable[[int], None]) -> _LooksLikeDefault:
        handler = super().__new__(cls, signal.SIG_DFL)
        handler._then = then
        return handler

    _then: Callable[[int], None]

    def __call__(self, number: int, _frame: object) -> None:
        self._then(number)


class Termination:
    """Calls a function at SIGTERM, then ends the process by it; only where the signal would have ended it.

    Not in the script's forked children: these end as they always do, also between fork and their first line, where
    no handler in Python is called.

    No handler in Python is called either while the main thread waits in C, as in a collective that other ranks
    never join. faulthandler's handler, which is in C, then tells a thread, and that ends the process without the
    call.
    """

    def __init__(self, before_it: Callable[[int], object]) -> None:
        """Install it.

        Args:
            before_it: is called with the signal's number, in the main thread, between two lines of the script.
        """
        self._before_it, self._process = before_it, os.getpid()
        self._handler = _LooksLikeDefault(self._terminated)
        self._set_aside = self._called = False
        self._told: int | None = None  # by the handler in C; None where there is no such handler
        if _current_handler(signal.SIGTERM) != signal.SIG_DFL:
            return
        _set_handler(signal.SIGTERM, self._handler)
        if hasattr(faulthandler, "register"):
            heard, self._told = _pipe()
            os.set_blocking(self._told, False)
            _thread.start_new_thread(self._end_if_stuck, (heard,))
            self._listen()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.set_aside, after_in_parent=self._take_up)

    def set_aside(self) -> None:
        """Let SIGTERM do what it does by default, unless the script has a handler of its own."""
        self._set_aside = _in_main_thread() and _current_handler(signal.SIGTERM) is self._handler
        if self._set_aside:
            self._listen_no_more()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @contextlib.contextmanager
    def postponed(self) -> Iterator[None]:
        """Let SIGTERM wait until the report of a failure is written, unless the script has a handler of its own.

        A launcher sends it to all ranks within moments after one has failed.
        """
        if not _in_main_thread() or _current_handler(signal.SIGTERM) is not self._handler:
            yield
            return
        arrived = []

        def note(number: int, _frame: object) -> None:
            arrived.append(number)
            if len(arrived) == 1 and os.getpid() == self._process:
                _end_later(number)
            else:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)

        self._listen_no_more()
        _set_handler(signal.SIGTERM, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if arrived:
                os.kill(os.getpid(), signal.SIGTERM)

    def _take_up(self) -> None:
        if self._set_aside:
            _set_handler(signal.SIGTERM, self._handler)
            self._listen()

    def _listen(self) -> None:
        if self._told is not None:
            faulthandler.register(signal.SIGTERM, self._told, all_threads=False, chain=True)

    def _listen_no_more(self) -> None:
        """Put back the handler below; only while ours is in place, because a script may have put another there."""
        if self._told is not None:
            faulthandler.unregister(signal.SIGTERM)

    def _end_if_stuck(self, heard: int) -> None:
        os.read(heard, 1)
        time.sleep(STUCK_S)
        if not self._called and os.getpid() == self._process:
            default = ctypes.c_void_p(int(signal.SIG_DFL))
            ctypes.CDLL(None).signal(signal.SIGTERM, default)  # `signal.signal` is for the main thread alone
            os.kill(self._process, signal.SIGTERM)

    def _terminated(self, number: int) -> None:
        self._called = True
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() == self._process:
            _end_later(number)
            self._before_it(number)
        os.kill(os.getpid(), number)


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe, with numbers that the script's own files do not get."""
    import fcntl

    low = os.pipe()
    try:
        reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, OWN_FILES_FROM) for end in low)
    except OSError:  # so few are allowed
        return low
    for end in low:
        os.close(end)
    return reading, writing


def _end_later(number: int) -> None:
    """End this process by a signal in a while: the script may hold a lock that the report waits for."""
    late = threading.Timer(GRACE_S, os.kill, (os.getpid(), number))
    late.daemon = True
    late.start()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class ExitHook:
    """Replaces `os._exit` while the script runs. Children that the script forks exit as always."""

    def __init__(self, before_it: Callable[[int], object]) -> None:
        """Replace nothing yet; `before_it` is called with the exit code."""
        self._before_it, self._process = before_it, os.getpid()
        self._patches, self._called = Patches(), False

    def __enter__(self) -> ExitHook:
        self._patches.around(os, "_exit", self._reporting)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patches.undo()

    def _reporting(self, leave: Callable[[int], Any]) -> Callable[..., Any]:
        def leaving(status: int) -> Any:
            if isinstance(status, int) and os.getpid() == self._process and not self._called:
                self._called = True
                late = threading.Timer(EXIT_GRACE_S, leave, (status,))
                late.daemon = True
                with contextlib.suppress(BaseException):
                    late.start()
                    self._before_it(status)
            return leave(status)

        return leaving


class MemoryReserve:
    """Address space that is given back when the script has failed.

    A limit on a process's memory (`ulimit -d` or `-v`, `resource.setrlimit`, strict overcommit) counts it. Its
    pages are never touched, so it takes no physical memory.
    """

    def __init__(self) -> None:
        """Take it, where there is so much; not on Windows.

        NumPy's linear algebra takes a buffer of 32 MiB at its first product, and ends the process where it gets
        none. It is taken here, and not while a script is watched that has less left than that.
        """
        _ = np.ones((2, 2)) @ np.ones((2, 2))
        self._space: mmap.mmap | None = None
        if hasattr(mmap, "MAP_PRIVATE"):  # a shared mapping, mmap's default, is not counted
            with contextlib.suppress(OSError, ValueError):
                self._space = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def release(self) -> None:
        """Give it back. Releasing twice does no harm."""
        if self._space is not None:
            self._space.close()
            self._space = None
