"""Lists the processes on each GPU through NVIDIA's management library (NVML) and its binding `nvidia-ml-py`.

No framework is needed, and no CUDA context is made: asking takes no memory of a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from diagnostics.facts.gpu import CardFacts, Holder

INSTALL = "pip install nvidia-ml-py"

# A file name in the process's address space gives its framework away.
_LIBRARIES = {
    "libtensorflow": "TensorFlow",
    "_pywrap_tensorflow": "TensorFlow",
    "libtorch": "PyTorch",
    "jaxlib": "JAX",
}


class NoCards(Exception):
    """There is no GPU or no driver; the message says which, in one line.

    Attributes:
        looked: whether the answer is certain: no driver or no GPU, as opposed to no means of asking.
    """

    def __init__(self, message: str, *, looked: bool) -> None:
        super().__init__(message)
        self.looked = looked


def cards(library: Any = None) -> tuple[CardFacts, ...]:
    """Return every GPU and its holders.

    Args:
        library: what answers as the module `pynvml` does; that module itself if None.

    Raises:
        NoCards: no driver, no GPU, or `nvidia-ml-py` is not installed.
    """
    library = _pynvml() if library is None else library
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise NoCards(
            f"No NVIDIA driver answers here ({error}), so there is no GPU to look at.", looked=True
        ) from None
    try:
        count = library.nvmlDeviceGetCount()
        if not count:
            raise NoCards("The NVIDIA driver is there, but it knows of no GPU.", looked=True)
        driver = _text(library.nvmlSystemGetDriverVersion())
        return tuple(_card(library, index, driver) for index in range(count))
    finally:
        library.nvmlShutdown()


def _pynvml() -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        if not _driver_is_there():
            raise NoCards(
                "No NVIDIA driver is installed here, so there is no GPU to look at.", looked=True
            ) from None
        raise NoCards(
            f"Which process holds a GPU can be read only through nvidia-ml-py, which is not installed: {INSTALL}",
            looked=False,
        ) from None


def _driver_is_there() -> bool:
    try:
        ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _card(library: Any, index: int, driver: str) -> CardFacts:
    handle = library.nvmlDeviceGetHandleByIndex(index)
    memory = library.nvmlDeviceGetMemoryInfo(handle)
    held: dict[int, int | None] = {}
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        with contextlib.suppress(library.NVMLError):  # not every GPU, or every permission, tells
            for process in getattr(library, name)(handle):
                held[int(process.pid)] = None if process.usedGpuMemory is None else int(process.usedGpuMemory)
    holders = sorted((Holder(pid, size) for pid, size in held.items()), key=lambda h: -(h.size or 0))
    return CardFacts(
        index=index,
        name=_text(library.nvmlDeviceGetName(handle)),
        total=int(memory.total),
        free=int(memory.free),
        holders=tuple(described(holder) for holder in holders),
        driver=driver,
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value  # bytes before nvidia-ml-py 11.5


def described(holder: Holder, proc: Path = Path("/proc")) -> Holder:
    """Add user, frameworks and command line, as far as the operating system tells them.

    Nothing is added for a process of another container, nor where `proc`, Linux's list of processes, is missing.
    """
    folder = proc / str(holder.pid)
    return replace(holder, user=_user(folder), frameworks=_frameworks(folder), command=_command(folder))


def _user(folder: Path) -> str | None:
    try:
        number = folder.stat().st_uid
    except OSError:
        return None
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):  # Windows, or a user of another container
        return str(number)


def _command(folder: Path) -> str | None:
    try:
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    return " ".join(word for word in words if word) or None


def _frameworks(folder: Path) -> tuple[str, ...] | None:
    try:
        with (folder / "maps").open(errors="replace") as maps:
            return tuple(sorted(set(_named(maps))))
    except OSError:  # another user's process
        return None


def _named(maps: Iterator[str]) -> Iterator[str]:
    for line in maps:
        file = os.path.basename(line.rstrip())
        yield from (framework for part, framework in _LIBRARIES.items() if part in file or f"/{part}/" in line)
