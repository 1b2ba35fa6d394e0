"""Directories that are built once per machine and then only read.

They live in the user's cache directory (`bug-zoo`), or where the environment variable `ZOO_CACHE` says. Beside
each stands a record of its files (`NAME.sha256`, as `sha256sum` writes it): a directory that does not agree with
its record was truncated, emptied or half deleted since, and is built again.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

COMPLETE = "# complete"  # last line of a record: one that was truncated itself is noticed


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
    """The directory `name` in the cache; `build(directory)` fills it if it is not there, whole and unchanged.

    Of several processes, one builds and the others wait. The directory appears under its name when it is
    complete and not before, so a builder that was killed leaves nothing that could be taken for a result.

    Args:
        name: with a version in it; another version is another directory.
        what: what is built, for the person who waits ("the tiny checkpoint").
        build: fills an empty directory.

    Raises:
        LabError: the cache directory cannot be written, or what is in it cannot be read or replaced.
    """
    finished = root() / name
    if damage(finished) is None:
        return finished
    import filelock

    try:
        finished.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(finished.with_name(f"{name}.lock"))
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            _say(f"Another process is building {what}; waiting until it is done.")
            lock.acquire()
        try:
            if (reason := damage(finished)) is not None:
                if os.path.lexists(finished):
                    _say(f"Building {what} again, in {finished}: {reason}")
                else:
                    _say(f"Building {what}, once for this machine, in {finished}")
                _build(finished, build)
        finally:
            lock.release()
    except OSError as error:
        if os.path.lexists(finished):
            raise LabError(
                f"{finished} is damaged and cannot be replaced ({error.strerror or error}).\n"
                "Delete that folder, or set the environment variable ZOO_CACHE to a directory of yours."
            ) from error
        raise LabError(
            f"No room for {what}: {finished.parent} cannot be written ({error.strerror or error}).\n"
            "Set the environment variable ZOO_CACHE to a directory of yours with some 20 MB to spare."
        ) from error
    return finished


def damage(directory: Path) -> str | None:
    """Say what is wrong with a directory that was built; None if it holds what was built.

    It reads every byte: 30 ms for the largest checkpoint (37 MB), where a look at the sizes would not notice the
    zeros that a power cut leaves in a file.

    Raises:
        LabError: it cannot be read.
    """
    try:
        *lines, last = _record_of(directory).read_text("utf-8", errors="replace").splitlines() or [""]
        if last != COMPLETE:
            return "its record is damaged"
        for line in lines:
            digest, _, name = line.partition("  ")
            try:
                if _digest(directory / name) != digest:
                    return f"{name} is not what was built"
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return f"{name} is missing"
    except (FileNotFoundError, NotADirectoryError):
        return "its build was not completed"
    except OSError as error:
        raise LabError(
            f"{directory} cannot be read ({error.strerror or error}).\n"
            "Delete that folder and it is built again, or set the environment variable ZOO_CACHE to another place."
        ) from error
    return None if directory.is_dir() else "it is not there"


def _build(finished: Path, build: Callable[[Path], None]) -> None:
    """Build beside the place, then move into it in one step. The lock is held, so nobody else is at it."""
    prefix = f"{finished.name}.building-"
    for abandoned in finished.parent.glob(f"{prefix}*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    building, aside = (Path(tempfile.mkdtemp(prefix=prefix, dir=finished.parent)) for _ in range(2))
    try:
        build(building)
        building.chmod(0o755)  # mkdtemp makes it private, but a shared ZOO_CACHE has several readers
        lines = [f"{_digest(file)}  {name}" for name, file in _files(building)]
        (aside / "record").write_text("\n".join([*lines, COMPLETE, ""]), "utf-8")
        if os.path.lexists(finished):  # damaged
            os.replace(finished, aside / "damaged")
        os.replace(building, finished)
        os.replace(aside / "record", _record_of(finished))
    finally:
        for leftover in (building, aside):
            shutil.rmtree(leftover, ignore_errors=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _record_of(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.sha256")


def _files(directory: Path) -> list[tuple[str, Path]]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [(file.relative_to(directory).as_posix(), file) for file in files]


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
