"""A place where the ranks of one machine find each other: a file, and the loopback interface."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path


def meeting_point() -> str:
    """Return an `init_method` for the ranks that this process is about to start.

    It is a file that nobody else knows, so no port has to be chosen that another program may take meanwhile; gloo
    itself listens on ports that the system gives it. Its folder goes with this process, and so do ranks that are
    left: one that waits there for the others does not hear Ctrl-C. The ranks talk over the loopback interface
    alone, unless `GLOO_SOCKET_IFNAME` names another.
    """
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    folder = Path(tempfile.mkdtemp(prefix="bug-zoo-ranks-"))
    atexit.register(_leave, folder)
    return (folder / "store").as_uri()


def _leave(folder: Path) -> None:
    for rank in multiprocessing.active_children():
        rank.terminate()
    shutil.rmtree(folder, ignore_errors=True)
