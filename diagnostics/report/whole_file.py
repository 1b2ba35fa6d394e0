"""Writes files atomically."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    r"""Replace a file with a text, in UTF-8, or leave it unchanged.

    Characters that cannot be encoded, such as half of a surrogate pair, are written as escapes (``\ud800``). A
    link keeps pointing to its file, and a file keeps its permissions. A special file, such as a pipe, is written
    to.

    Raises:
        OSError: it cannot be written.
    """
    data = text.encode("utf-8", errors="backslashreplace")
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        Path(target).write_bytes(data)
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, os.strerror(13), target)
    scratch = os.path.join(os.path.dirname(target), f".diagnose-{os.urandom(6).hex()}.tmp")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask
    except PermissionError:
        if mode is None:
            raise
        Path(target).write_bytes(data)  # only the file itself may be written, not its folder
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if mode is not None:
            os.chmod(scratch, stat.S_IMODE(mode))
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
