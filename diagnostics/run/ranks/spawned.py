"""Ranks that a script starts by `torch.multiprocessing.spawn`, each observed in its own process.

At its end each rank writes its report to a folder of the launch, and the script's report joins them.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from diagnostics.report.report import Report
from diagnostics.run.extra import Extra
from diagnostics.run.library_modules import LibraryModules, is_alias
from diagnostics.run.options import Launch, RunOptions
from diagnostics.run.script import Ending, Script

from .spawn_hook import SpawnHook

MAX_LAUNCHES = 8  # launches of one script that are observed, the first ones


class SpawnedRanks(Extra):
    """Observes the ranks that the script starts."""

    def __init__(self, script: Script, options: RunOptions, stall_timeout: float | None) -> None:
        """Prepare; see `Launch`."""
        self._script, self._options, self._stall_timeout = script, options, stall_timeout
        self._folder: Path | None = None
        self._launches: list[Launch] = []
        self._hook: SpawnHook | None = None

    def start(self, modules: LibraryModules) -> None:
        """Observe from now on, unless the script has modules of the same names as this library's."""
        if not modules.clashes and not is_alias():
            self._hook = SpawnHook(self._launch, begin)

    def reports(self, ending: Ending, backward_passes: int) -> Sequence[Report]:
        """Observe no more; return a joined report for each launch whose ranks have left some, and remove these."""
        from diagnostics.errors import InvalidInput
        from diagnostics.report.join import joined_ranks

        if self._hook is not None:
            self._hook.close()
        found = []
        for launch in self._launches:
            with contextlib.suppress(InvalidInput):  # none has left one
                found.append(joined_ranks(launch.folder))
        self.stopped = any(stage.status == "stopped" for report in found for stage in report.stages)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return found

    def _launch(self, world: int) -> Launch | None:
        if len(self._launches) >= MAX_LAUNCHES:
            return None
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="diagnose-"))
        folder = self._folder / str(len(self._launches))
        folder.mkdir()
        options = self._options
        launch = Launch(
            folder, world, self._script, options.policy, self._stall_timeout, options.stop_on, options.batch_file
        )
        self._launches.append(launch)
        return launch


def begin(number: int, launch: Launch) -> None:
    """Observe this process from now on as a rank of a launch."""
    from diagnostics.run.ranks.spawned_session import SpawnedSession

    SpawnedSession(number, launch).begin()
