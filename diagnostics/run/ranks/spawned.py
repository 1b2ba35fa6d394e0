"""Ranks that a script starts by `torch.multiprocessing.spawn`, each observed in its own process.

At its end each rank writes its report to a folder of the launch, and the script's report joins them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from .spawn_hook import SpawnHook

if TYPE_CHECKING:
    from diagnostics.report.report import Report
    from diagnostics.run.script import Script
    from diagnostics.run.session import RunOptions

MOST = 8  # launches of one script that are observed, the first ones


@dataclasses.dataclass(frozen=True)
class Launch:
    """What the ranks of one call of `spawn` are told.

    Attributes:
        folder: for their reports.
        world: number of ranks.
        script: that starts them.
        options: of its run.
    """

    folder: Path
    world: int
    script: Script
    options: RunOptions


class SpawnedRanks:
    """Observes the ranks that the script starts, from its creation on."""

    def __init__(self, script: Script, options: RunOptions) -> None:
        """Begin.

        Args:
            script: that may start ranks.
            options: of its run.
        """
        self._script, self._options = script, options
        self._folder: Path | None = None
        self._launches: list[Launch] = []
        self._hook = SpawnHook(self._launch, begin)

    def reports(self) -> list[Report]:
        """Observe no more; return a joined report for each launch whose ranks have left some, and remove these."""
        from diagnostics.errors import InvalidInput
        from diagnostics.report.join import joined_ranks

        self._hook.close()
        found = []
        for launch in self._launches:
            with contextlib.suppress(InvalidInput):  # none has left one
                found.append(joined_ranks(launch.folder))
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return found

    def _launch(self, world: int) -> Launch | None:
        if len(self._launches) >= MOST:
            return None
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="diagnose-"))
        folder = self._folder / str(len(self._launches))
        folder.mkdir()
        self._launches.append(Launch(folder, world, self._script, self._options))
        return self._launches[-1]


def begin(number: int, launch: Launch) -> None:
    """Observe this process from now on as a rank of a launch."""
    from diagnostics.run.ranks.spawned_session import SpawnedSession

    SpawnedSession(number, launch).begin()
