"""A learner's versions of the scripts, in `attempts/`: made, kept when they are restarted, compared with ours."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bugs.keeper.manifest import Exhibit

FOLDER, BACKUPS = "attempts", "backups"
COMMAND = "$ python "  # of a script's docstring, which names the script itself


@dataclass(frozen=True)
class Attempt:
    """One learner's version of one exhibit's script. It may not exist yet."""

    exhibit: Exhibit
    name: str  # of its folder in `attempts/`

    @property
    def folder(self) -> Path:
        """Where it stands, with whatever the learner puts beside it."""
        return self.exhibit.root / FOLDER / self.name

    @property
    def script(self) -> Path:
        """The learner's version."""
        return self.folder / "train.py"

    @property
    def shown(self) -> str:
        """The script's path from the zoo's root."""
        return f"{FOLDER}/{self.name}/train.py"

    @property
    def begun(self) -> bool:
        """Whether there is a script to check."""
        return self.script.is_file()

    def begin(self, text: str) -> None:
        """Write the script. Its folder appears with the script in it, or not at all.

        Raises:
            FileExistsError: the folder is there.
            OSError: it cannot be written.
        """
        parent = self.folder.parent
        parent.mkdir(parents=True, exist_ok=True)
        if self.folder.exists():
            if self.begun:
                raise FileExistsError(self.shown)
            self.script.write_text(text, "utf-8")  # the learner has removed the script and kept the folder
            return
        scratch = Path(tempfile.mkdtemp(prefix=f".{self.name}-", dir=parent))
        try:
            with open(scratch / "train.py", "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            scratch.chmod(0o755)
            scratch.rename(self.folder)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    def put_aside(self) -> Path | None:
        """Move the attempt to `attempts/backups`, and return where to; None if there is none."""
        if not self.folder.exists():
            return None
        backups = self.folder.parent / BACKUPS
        backups.mkdir(exist_ok=True)
        stem = f"{self.name}_{time.strftime('%Y-%m-%d_%H%M%S')}"
        for number in range(1, 1000):
            place = backups / (stem if number == 1 else f"{stem}_{number}")
            if place.exists():
                continue
            with contextlib.suppress(FileExistsError):
                self.folder.rename(place)
                return place
        raise FileExistsError(f"{backups} holds a thousand backups of this second")


def fingerprint(script: Path) -> str:
    """Return the sha256 of a script."""
    return hashlib.sha256(script.read_bytes()).hexdigest()


def dealt(exhibit: Exhibit, shown: str) -> str:
    """Return the exhibit's broken script, whose docstring tells the command for the copy."""
    text = exhibit.script.read_text("utf-8")
    return text.replace(f"{COMMAND}bugs/{exhibit.folder}/train.py", f"{COMMAND}{shown}")


def difference(mine: str, mine_name: str, ours: str, ours_name: str) -> list[str]:
    """Return a unified diff, without the docstring's command, which names the script itself."""
    one, other = ([line for line in text.splitlines() if not line.startswith(COMMAND)] for text in (mine, ours))
    return list(difflib.unified_diff(one, other, mine_name, ours_name, lineterm="", n=2))
