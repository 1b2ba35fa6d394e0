"""A notebook that somebody left open: a second process that runs its cells and then waits for the next.

It is a plain Python process, not Jupyter; what matters of a notebook is that it keeps what it has until it is shut
down. It ends with the process that opened it, however that ends.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from types import TracebackType

from bugs.lab.cache import LabError
from bugs.lab.shared_card import open_card

READY = "the last cell is done"
PATIENCE_S = 10  # for an orderly end, in which TensorFlow removes its temporary files


class Notebook:
    """The process. As a context manager it is closed at the end of the block.

    Attributes:
        pid: its number.
    """

    def __init__(self, cells: str) -> None:
        if sys.platform != "win32":
            open_card()  # made here, if need be, so that the notebook finds the same
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from bugs.lab import notebook; notebook.run()", cells],
            stdin=subprocess.PIPE,  # closed by the system when this process ends, and then the notebook ends, too
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for whoever has the terminal
        )
        self.pid = self._process.pid
        atexit.register(self.close)
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                if line.rstrip("\n") == READY:
                    return
                print(f"notebook: {line}", end="", file=sys.stderr)
        except BaseException:  # Ctrl-C while it loads
            self.close()
            raise
        raise LabError(f"The notebook ended with exit code {self.close()} before its last cell was done.")

    def close(self) -> int:
        """Shut it down, wait for its end, and return its exit code. Closing twice does no harm."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            return self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def __enter__(self) -> Notebook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_notebook(cells: str) -> Notebook:
    """Run the cells, one Python program, in a process of their own, and return when the last is done.

    What they print goes to standard error, each line after "notebook: ".

    Raises:
        LabError: the cells ended their process; what Python said of it stands above the message.
    """
    return Notebook(cells)


def run() -> None:
    """Be the notebook's process: run the cells in `sys.argv[1]`, say so, and wait until it is shut down."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it otherwise
    done, closed = threading.Event(), threading.Event()
    threading.Thread(target=_watch, args=(done, closed), daemon=True).start()
    try:
        exec(compile(sys.argv[1], "<notebook>", "exec"), {"__name__": "__main__"})
        done.set()
        print(READY, flush=True)
        closed.wait()
    except (KeyboardInterrupt, BrokenPipeError):
        if not closed.is_set():
            raise


def _watch(done: threading.Event, closed: threading.Event) -> None:
    sys.stdin.read()  # nothing is ever written; it returns when the other end is closed
    closed.set()
    if not done.is_set():
        os.kill(os.getpid(), signal.SIGINT)  # in the middle of a cell
