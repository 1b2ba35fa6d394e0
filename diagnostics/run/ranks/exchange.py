"""Merges the findings of the ranks that a launcher such as `torchrun` started.

Rank 0 prints its report like a single process. The others write their findings to a temporary folder of the host,
without a collective and without waiting; the last process of a host to end prints the findings that rank 0 does
not have. Under torchrun on Linux a process that was killed is not waited for; elsewhere no process is the last
then, and only rank 0's report is printed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostics.collectors.system.processes import process_start, running_ranks
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.report.ranks import rank_file
from diagnostics.report.report import Report
from diagnostics.report.whole_file import write_whole

_OF_THE_LAUNCH = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")


@dataclass(frozen=True)
class Rank:
    """The rank of this process, from `RANK` and `WORLD_SIZE` in the environment.

    Attributes:
        number: from 0.
        world: number of ranks.
        local_world: number of ranks on this host.
        restarts: how often `torchrun` has started the job again, from `TORCHELASTIC_RESTART_COUNT`.
    """

    number: int
    world: int
    local_world: int
    restarts: int = 0

    def file(self, path: Path, launched: float | None = None) -> Path:
        """Return the file for this rank's report.

        `torchrun` also starts the ranks again when a host joins or leaves, or when one fails on another host, and
        does not count that as a restart here: a report that this launch has already written is kept, and the next
        number is taken.

        Args:
            path: that the user gave.
            launched: when the launcher was started, in seconds since the epoch; None if that is not known.
        """
        restarts = self.restarts
        while launched is not None and _written_since(launched, rank_file(path, self.number, restarts)):
            restarts += 1
        return rank_file(path, self.number, restarts)


def rank_of_this_process(environment: Mapping[str, str] = os.environ) -> Rank | None:
    """Read the rank; None if no launcher has set one."""
    try:
        number, world = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        local = int(environment.get("LOCAL_WORLD_SIZE", world))
    except (KeyError, ValueError):
        return None
    restarts = environment.get("TORCHELASTIC_RESTART_COUNT", "")
    return (
        Rank(number, world, local, int(restarts) if restarts.isdecimal() else 0) if 0 <= number < world else None
    )


def launch_time(environment: Mapping[str, str] = os.environ) -> float | None:
    """Return when the `torchrun` that started this process was started; None without it, or if it is not known."""
    return process_start(os.getppid()) if "TORCHELASTIC_RUN_ID" in environment else None


def _written_since(time: float, file: Path) -> bool:
    try:
        found = file.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_mtime >= time


class Exchange:
    """Exchanges findings between the ranks of one host, through files.

    Attributes:
        folder: of the exchange; it exists once something was written.
        notes: of all ranks of the host, once the last of them has left; empty before, and on other ranks.
    """

    notes: tuple[RankNotes, ...] = ()

    def __init__(self, rank: Rank, folder: Path | None = None) -> None:
        """Remove files of an earlier launch, and of an earlier attempt of this one.

        Args:
            rank: of this process.
            folder: of the exchange; None for one of this launch alone.
        """
        self._rank = rank
        self.folder = _folder() if folder is None else folder
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
            self.folder.joinpath("printed").unlink(missing_ok=True)
            self._remove_earlier()

    def _remove_earlier(self) -> None:
        """Remove what was left before this process began, also by ranks that had other numbers."""
        began = process_start(os.getpid())
        if began is not None and self.folder.exists():
            self.open()
            for file in self.folder.iterdir():
                if not _written_since(began, file):
                    file.unlink(missing_ok=True)

    @property
    def _file(self) -> Path:
        return self.folder / f"{self._rank.number}.json"

    def is_first_to_crash(self) -> bool:
        """Whether no other rank of this host except rank 0 has printed its crash: often all have the same."""
        try:
            self.open()
            self.folder.joinpath("crash").touch(exist_ok=False)
        except FileExistsError:
            return False
        except OSError:
            pass
        return True

    def leave(self, report: Report, notes: RankNotes | None = None) -> list[str]:
        """Write this rank's findings for the others; if this is the last to end, return the lines to print.

        Args:
            report: of this rank.
            notes: of this rank, to be compared with those of the others; None if there are none.
        """
        messages = {
            finding.rule: f"{finding.severity}: {finding.rule}: {finding.message.partition(chr(10))[0]}"
            for finding in report.findings
            if finding.severity != "note"
        }
        known = [one.rule for finding in report.findings for one in (finding, *finding.consequences)]
        try:
            self.open()
            kept = None if notes is None else notes.as_dict()
            write_whole(self._file, json.dumps({"messages": messages, "known": known, "notes": kept}))
            left = {int(file.stem): json.loads(file.read_text("utf-8")) for file in self.folder.glob("*.json")}
            if len(left) < self._rank.local_world and self._others_run(set(left)):
                return []
            self.folder.joinpath("printed").touch(exist_ok=False)
        except FileExistsError:  # another was the last
            return []
        except (OSError, ValueError):  # the folder cannot be used
            number = self._rank.number
            return [f"rank {number}: {message}" for message in messages.values()] if number > 0 else []
        shutil.rmtree(self.folder, ignore_errors=True)
        self.notes = tuple(RankNotes.from_dict(one["notes"]) for _, one in sorted(left.items()) if one["notes"])
        return list(_beyond_rank_0(left))

    def _others_run(self, left: set[int]) -> bool:
        """Whether a rank that has not left still runs; one that was killed leaves nothing."""
        running = running_ranks(os.getppid()) if "TORCHELASTIC_RUN_ID" in os.environ else None
        return running is None or not running <= {*left, self._rank.number}

    def open(self) -> None:
        """Create the folder, or refuse one of another user, because its name can be guessed.

        Raises:
            OSError: it cannot be used.
        """
        with contextlib.suppress(FileExistsError):
            self.folder.mkdir(mode=0o700)
        found = self.folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
            raise PermissionError(f"{self.folder} belongs to another user")


def _folder() -> Path:
    """Return the same folder for all processes of one launch, which have the same parent."""
    launch = [str(os.getppid()), *(os.environ.get(name, "") for name in _OF_THE_LAUNCH)]
    name = hashlib.sha256("\0".join(launch).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"diagnose-{name}"


def _beyond_rank_0(left: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for each finding that rank 0 does not have, with the ranks that have it."""
    known = set(left[0]["known"]) if 0 in left else set()
    found: dict[str, list[int]] = {}
    for rank in sorted(left):
        for rule in left[rank]["messages"]:
            if rule not in known:
                found.setdefault(rule, []).append(rank)
    for rule, ranks in found.items():
        others = f" and {len(ranks) - 1} more" if len(ranks) > 1 else ""
        yield f"rank {ranks[0]}{others}: {left[ranks[0]]['messages'][rule]}"
