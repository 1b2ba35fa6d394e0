"""Directories that are built once per machine and then only read.

They live in the user's cache directory (`bug-zoo`), or where the environment variable `ZOO_CACHE` says.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


class LabError(SystemExit):
    """The lab cannot hand out what was asked for; the message says what to do.

    A script that is not meant to handle it ends with the message alone, without a traceback.
    """


def root() -> Path:
    """The cache directory: `ZOO_CACHE` if set, else the place that this system keeps for caches."""
    if place := os.environ.get("ZOO_CACHE"):
        return Path(place).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("bug-zoo", appauthor=False))


def built(name: str, what: str, build: Callable[[Path], None]) -> Path:
    """The directory `name` in the cache; `build(directory)` fills it if it is not there yet.

    Of several processes, one builds and the others wait. The directory appears under its name when it is
    complete and not before, so a builder that was killed leaves nothing that could be taken for a result.

    Args:
        name: with a version in it; another version is another directory.
        what: what is built, for the person who waits ("the tiny checkpoint").
        build: fills an empty directory.

    Raises:
        LabError: the cache directory cannot be written.
    """
    finished = root() / name
    if finished.is_dir():
        return finished
    import filelock
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        finished.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(finished.with_name(f"{name}.lock"))
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            console.print(f"Another process is building {what}; waiting until it is done.")
            lock.acquire()
        try:
            if not finished.is_dir():
                console.print(f"Building {what}, once for this machine, in {finished}")
                with console.status("building"):
                    _build(finished, build)
        finally:
            lock.release()
    except OSError as error:
        raise LabError(
            f"No room for {what}: {finished.parent} cannot be written ({error.strerror or error}).\n"
            "Set the environment variable ZOO_CACHE to a directory of yours with some 20 MB to spare."
        ) from error
    return finished


def _build(finished: Path, build: Callable[[Path], None]) -> None:
    """Build beside the place, then move into it in one step. The lock is held, so nobody else is at it."""
    for abandoned in finished.parent.glob(f"{finished.name}.building-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    building = Path(tempfile.mkdtemp(prefix=f"{finished.name}.building-", dir=finished.parent))
    try:
        build(building)
        building.chmod(0o755)  # mkdtemp makes it private, but a shared ZOO_CACHE has several readers
        os.replace(building, finished)
    finally:
        shutil.rmtree(building, ignore_errors=True)
