"""A learner's versions of the scripts, in `attempts/`: made, kept when they are restarted, compared with ours."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.learner.progress import write_atomically

FOLDER, BACKUPS = "attempts", "backups"
COMMAND = "$ python "  # of a script's docstring, which names the script itself


@dataclass(frozen=True)
class Attempt:
    """One learner's version of a script or a notebook. It may not exist yet."""

    root: Path  # of the zoo
    name: str  # of its folder in `attempts/`
    file: str = "train.py"

    @property
    def folder(self) -> Path:
        """Its folder, which also holds whatever the learner puts beside it."""
        return self.root / FOLDER / self.name

    @property
    def script(self) -> Path:
        """The file itself."""
        return self.folder / self.file

    @property
    def shown(self) -> str:
        """The script's path from the zoo's root."""
        return f"{FOLDER}/{self.name}/{self.file}"

    @property
    def begun(self) -> bool:
        """Whether there is a script to check."""
        return self.script.is_file()

    @property
    def _next(self) -> Path:
        """A folder with a new script, which is whole as soon as it is there, on its way into the place."""
        return self.folder.with_name(f".{self.name}.next")

    def begin(self, text: str) -> None:
        """Write the script. Its folder appears with the script in it, or not at all.

        Raises:
            FileExistsError: the folder is there.
            OSError: it cannot be written.
        """
        if self.begun:
            raise FileExistsError(self.shown)
        if self.folder.exists():
            write_atomically(self.script, text)  # the learner has removed the script and kept the folder
            return
        self._prepare(text)
        self._next.rename(self.folder)

    def restart(self, text: str, old: Attempt, remember: Callable[[], object] = lambda: None) -> Path | None:
        """Write the script in the place of an older version, and return where that was put; None if there is none.

        Args:
            text: of the script.
            old: the older version; it may have another name.
            remember: called when that is put aside; it is put back if this fails.

        Raises:
            OSError: it cannot be written. The older version is where it was, or else in `attempts/backups`.
        """
        self._prepare(text)
        backup = None
        try:
            backup = old.put_aside()
            remember()
        except BaseException:
            if backup is not None:
                backup.rename(old.folder)
            shutil.rmtree(self._next, ignore_errors=True)
            raise
        self._next.rename(self.folder)
        return backup

    def finish(self) -> None:
        """Do the rest of a restart that was killed when the older version was already put aside."""
        if not os.path.lexists(self.folder) and (self._next / self.file).is_file():
            self._next.rename(self.folder)

    def _prepare(self, text: str) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._next, ignore_errors=True)
        self._next.mkdir()
        write_atomically(self._next / self.file, text)

    def put_aside(self) -> Path | None:
        """Move the attempt to `attempts/backups`, and return where to; None if there is none."""
        if not os.path.lexists(self.folder):
            return None
        backups = self.folder.parent / BACKUPS
        backups.mkdir(exist_ok=True)
        stem = f"{self.name}_{time.strftime('%Y-%m-%d_%H%M%S')}"
        for number in range(1, 1000):
            place = backups / (stem if number == 1 else f"{stem}_{number}")
            if os.path.lexists(place):
                continue
            with contextlib.suppress(FileExistsError):
                self.folder.rename(place)
                return place
        raise FileExistsError(f"{backups} holds a thousand backups of this second")


def last_version(root: Path, name: str, file: str = "train.py") -> str:
    """Return the path of a learner's file from the zoo's root, or of its last backup; "" if there is neither."""
    backups = (root / FOLDER / BACKUPS).glob(f"{name}_*")
    in_order = sorted(backups, key=lambda place: [int(number) for number in re.findall(r"\d+", place.name)])
    for place in (root / FOLDER / name, *reversed(in_order)):
        for found in (place / file, place):
            if os.path.isfile(found):
                return found.relative_to(root).as_posix()
    return ""


def fingerprint(script: Path) -> str:
    """Return the sha256 of a script."""
    return hashlib.sha256(script.read_bytes()).hexdigest()


def copied(exhibit: Exhibit, shown: str) -> str:
    """Return the exhibit's broken script, whose docstring tells the command for the copy."""
    text = exhibit.script.read_text("utf-8")
    return text.replace(f"{COMMAND}bugs/{exhibit.folder}/train.py", f"{COMMAND}{shown}")


def difference(mine: str, mine_name: str, ours: str, ours_name: str) -> list[str]:
    """Return a unified diff, without the docstring's command, which names the script itself."""
    one, other = ([line for line in text.splitlines() if not line.startswith(COMMAND)] for text in (mine, ours))
    return list(difflib.unified_diff(one, other, mine_name, ours_name, lineterm="", n=2))
