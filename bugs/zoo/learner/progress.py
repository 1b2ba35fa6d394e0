"""What a learner has done so far: one JSON file, `attempts/progress.json`, that a person can read and edit.

It is replaced as a whole and never written in place, so a kill at any moment leaves the old or the new one. What
cannot be understood, because it was edited or comes from elsewhere, is kept in a copy, and the rest counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import reprlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

NAME, LOCK = "progress.json", ".progress.lock"
VERSION = 1
LOCK_S = 10.0  # to wait for another of our processes, which holds the lock for milliseconds
HINTS = 3
SURPRISE, OLD_SURPRISE = "surprise", "mystery"  # names in the file, and of the attempt's folder


@dataclass(frozen=True)
class Cage:
    """The way through one cage.

    Attributes:
        begun: when it was first tried, ISO 8601 in local time; empty if it was not.
        original: sha256 of the broken script that the attempt was copied from, so that a later version of the cage
            is noticed; empty if that is not known.
        hints: how many were given, 0 to 3.
        checks: how many were made.
        repaired: when a check first passed; empty if none has.
        solution_seen: whether our solution was shown before that.
        wrong: what the last check found wrong, by name; empty if it passed or there was none.
        reserved: the reservations of the last check that passed; empty if there were none.
    """

    begun: str = ""
    original: str = ""
    hints: int = 0
    checks: int = 0
    repaired: str = ""
    solution_seen: bool = False
    wrong: str = ""
    reserved: str = ""


@dataclass(frozen=True)
class Progress:
    """All of it.

    Attributes:
        cages: by id.
        surprise: digest of the id of the cage that was dealt last (`bugs.zoo.learner.surprise`), or empty.
        solved: ids of the cages that were repaired as surprises.
        notes: what was wrong with the file, for the learner; not kept.
    """

    cages: dict[str, Cage] = field(default_factory=dict)
    surprise: str = ""
    solved: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    def of(self, id: str) -> Cage:
        """Return the way through one cage; an empty one if it was never opened."""
        return self.cages.get(id, Cage())


class ProgressStore:
    """The file.

    Args:
        folder: `attempts/` of the zoo; made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / NAME

    def read(self) -> Progress:
        """Return what is known. A file that is damaged is copied, once, and what can be read of it counts.

        Raises:
            OSError: the file is there and cannot be read.
        """
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return Progress()
        try:
            values = json.loads(data)
            if not isinstance(values, dict):
                raise ValueError("it holds no object")
        except (ValueError, RecursionError) as error:
            return Progress(notes=(f"{self._name} cannot be read as JSON ({error}); {self._kept(data)}",))
        if isinstance(values.get("version"), int) and values["version"] > VERSION:
            newer = f"{self._name} was written by a newer zoo (version {values['version']})"
            return replace(_understood(values)[0], notes=(f"{newer}; {self._kept(data)}",))
        progress, problems = _understood(values)
        if problems:
            told = "; ".join(problems[:3])
            return replace(progress, notes=(f"{self._name}: {told}; {self._kept(data)}",))
        return progress

    def update(self, change: Callable[[Progress], Progress]) -> Progress:
        """Read, change and write, with no other process of ours in between; return what was written.

        Raises:
            OSError: the file cannot be read or written; it is then what it was.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            progress = change(self.read())
            write_atomically(self.file, _as_text(progress))
        return progress

    def change(self, id: str, solved: str | None = None, **changes: Any) -> Progress:
        """Change fields of one cage, and add the id of one that was repaired as a surprise."""

        def changed(p: Progress) -> Progress:
            surprises = p.solved if solved is None or solved in p.solved else (*p.solved, solved)
            return replace(p, cages=p.cages | {id: replace(p.of(id), **changes)}, solved=surprises)

        return self.update(changed)

    @property
    def _name(self) -> str:
        return f"{self.folder.name}/{NAME}"

    def _kept(self, data: bytes) -> str:
        """Keep a copy of a damaged file, and say where; the same content is kept once."""
        number = 1
        while (copy := self.folder / f"progress.damaged-{number}.json").exists():
            if copy.read_bytes() == data:
                break
            number += 1
        else:
            write_atomically(copy, data.decode("utf-8", "surrogateescape"))
        return f"it is kept as {self.folder.name}/{copy.name}, and what could be read of it counts"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock; the system gives it back when a process dies."""
        try:
            import fcntl
        except ImportError:  # Windows: two processes of one learner may lose a hint's count, and no more
            yield
            return
        with open(self.folder / LOCK, "w") as lock:
            until = time.monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > until:
                        raise TimeoutError(
                            f"another process holds {self.folder / LOCK}; end it, then try again"
                        ) from None
                    time.sleep(0.01)
            yield


def write_atomically(file: Path, text: str) -> None:
    """Replace a file with a text in UTF-8: whoever reads it, and after a crash, finds the old or the new one.

    Raises:
        OSError: it cannot be written.
    """
    scratch = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(scratch, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(scratch, file)
    except BaseException as error:
        if isinstance(error, OSError):  # a full disk does not say whose write it refuses
            error.filename, error.filename2 = os.fspath(file), None
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
    with contextlib.suppress(OSError, AttributeError):  # not every system lets a folder be opened
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _as_text(progress: Progress) -> str:
    values = {
        "version": VERSION,
        "cages": {id: asdict(cage) for id, cage in sorted(progress.cages.items())},
        "surprise": progress.surprise,
        "solved": list(progress.solved),
    }
    return json.dumps(values, indent=1) + "\n"


def _understood(values: dict[str, Any]) -> tuple[Progress, list[str]]:
    """Take over what has the right type, and list what has not."""
    values = _renamed(values)
    problems = [
        f"unknown key {_SHORT.repr(key)}"
        for key in values
        if key not in ("version", "cages", "surprise", "solved")
    ]
    cages: dict[str, Cage] = {}
    given = values.get("cages", {})
    if not isinstance(given, dict):
        problems.append("cages: expected an object")
        given = {}
    for id, fieldset in given.items():
        if not _is_text(id):
            problems.append(f"cages: expected ids, got {_SHORT.repr(id)}")
            continue
        if not isinstance(fieldset, dict):
            problems.append(f"cages.{id}: expected an object")
            continue
        cages[id], wrong = _cage(fieldset)
        problems += [f"cages.{id}.{name}: {what}" for name, what in wrong]
    surprise, solved = values.get("surprise", ""), values.get("solved", [])
    if not _is_text(surprise):
        problems.append("surprise: expected a text")
        surprise = ""
    if not (isinstance(solved, list) and all(_is_text(id) for id in solved)):
        problems.append("solved: expected a list of ids")
        solved = []
    return Progress(cages, surprise, tuple(solved)), problems


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values under today's names: a surprise was once called a mystery."""
    new = {SURPRISE if key == OLD_SURPRISE else key: value for key, value in values.items()}
    cages = new.get("cages")
    if isinstance(cages, dict) and OLD_SURPRISE in cages and SURPRISE not in cages:
        new["cages"] = {SURPRISE if id == OLD_SURPRISE else id: cage for id, cage in cages.items()}
    return new


def _cage(values: dict[str, Any]) -> tuple[Cage, list[tuple[str, str]]]:
    good, wrong = {}, []
    kinds = {each.name: type(each.default) for each in fields(Cage)}
    for name, value in values.items():
        if name not in kinds:
            wrong.append((name, "unknown"))
        elif not _TAKES[kinds[name]](value):
            wrong.append((name, f"expected {_KINDS[kinds[name]]}, got {_SHORT.repr(value)}"))
        else:
            good[name] = min(value, HINTS) if name == "hints" else value
    return Cage(**good), wrong


def _is_text(value: object) -> bool:
    """Whether a value is a text of one line that any file can hold: without control signs and lone surrogates."""
    return isinstance(value, str) and value.isprintable()


_SHORT = reprlib.Repr()
_TAKES: dict[type, Callable[[Any], bool]] = {
    int: lambda value: type(value) is int and value >= 0,
    bool: lambda value: isinstance(value, bool),
    str: _is_text,
}
_KINDS = {int: "a whole number, 0 or above", bool: "true or false", str: "a text"}


def now() -> str:
    """Return the time, for the fields of a `Cage`."""
    return time.strftime("%Y-%m-%d %H:%M")
