"""A process between the runner and a script, which ends the script and all its descendants with the runner.

`python supervisor.py FOLDER ARGUMENTS…` runs this Python with ARGUMENTS in FOLDER and ends as it ends: with the
same exit code, or killed by the same signal. It kills every process that the script has started

* `LINGER_S` after the script's own end,
* when its standard input is closed: by the runner, or by the system when the runner has died of whatever,
* when a signal ends it.

Two features of Linux close the gaps: an orphan is reparented to the supervisor and not to init
(PR_SET_CHILD_SUBREAPER), so a daemon, which forks twice and leaves session and process group, is found all the
same; and the kernel kills the script if the supervisor itself is killed (PR_SET_PDEATHSIG). On other systems a
daemon escapes unless the runner has seen it before it became one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

LINGER_S = 1.0  # for processes that print their last words after the script's end
SWEEP_S = 5.0  # a killed process is gone within milliseconds, unless it hangs in a system call
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
ENDING_SIGNALS = [
    getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM") if hasattr(signal, name)
]


def main(folder: str, arguments: list[str]) -> NoReturn:
    """Run the script, see to it that nothing of it is left, and end as it did."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _leave)
    runner_gone = threading.Event()
    try:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_linux_ties(),
        )
        threading.Thread(target=_watch_runner, args=(process, runner_gone), daemon=True).start()
        returncode = process.wait()
        deadline = time.monotonic() + LINGER_S
        while _reap() and not runner_gone.is_set() and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _sweep()
    if runner_gone.is_set():
        shutil.rmtree(folder, ignore_errors=True)  # a runner that was killed cannot
    if returncode < 0:
        _die_of(-returncode)
    os._exit(returncode)  # at once: there is nothing to flush, and the thread waits for the runner


def _linux_ties() -> Callable[[], None] | None:
    """Adopt orphans, and return what the script's process does before it starts; None on another system."""
    if sys.platform != "linux":
        return None
    prctl: Callable[..., Any] = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    supervisor = os.getpid()

    def die_with_supervisor() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != supervisor:  # it died before the kernel was told
            os._exit(1)

    return die_with_supervisor


def _watch_runner(process: subprocess.Popen[bytes], gone: threading.Event) -> None:
    """Kill the script, and its process group with it, when standard input is closed."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    gone.set()
    with contextlib.suppress(OSError):
        if process.returncode is not None:
            return
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _sweep() -> None:
    """Kill every descendant. Those of a killed process become children, and their turn comes in the next round."""
    deadline = time.monotonic() + SWEEP_S
    while _reap() and time.monotonic() < deadline:
        import psutil  # only here: most scripts leave nothing behind

        for descendant in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                descendant.kill()
        time.sleep(0.005)


def _reap() -> bool:
    """Collect the children that have ended; return whether others are left."""
    if not hasattr(os, "WNOHANG"):  # Windows keeps no dead children
        import psutil

        return bool(psutil.Process().children())
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _die_of(number: int) -> NoReturn:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the script has left its core, if any
    with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # a signal that does not end a process by default


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
