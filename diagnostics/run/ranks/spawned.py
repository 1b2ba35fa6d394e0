"""Ranks that a script starts by `torch.multiprocessing.spawn`, each observed in its own process.

The function that a rank is to run is pickled together with a call of `begin`, which the rank's process makes when
it reads it: no frame of this library lies between PyTorch and the function. At its end each rank writes its report
to a folder of the launch, and the script's report joins them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.collectors.isolation.patching import Patches

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
        self._patches, self._at_close = Patches(), contextlib.ExitStack()
        self._at_close.callback(self._patches.undo)
        self._at_close.callback(after_import("torch.multiprocessing.spawn", self._with_spawn))

    def reports(self) -> list[Report]:
        """Observe no more; return a joined report for each launch whose ranks have left some, and remove these."""
        from diagnostics.errors import InvalidInput
        from diagnostics.report.join import joined_ranks

        self._at_close.close()
        found = []
        for launch in self._launches:
            with contextlib.suppress(InvalidInput):  # none has left one
                found.append(joined_ranks(launch.folder))
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return found

    def _with_spawn(self, module: ModuleType) -> None:
        if hasattr(module, "start_processes"):
            self._patches.around(module, "start_processes", self._around)

    def _around(self, start: Callable[..., Any]) -> Callable[..., Any]:
        seen, signature = self, inspect.signature(start)

        def observed(*arguments: Any, **options: Any) -> Any:
            with contextlib.suppress(Exception):
                given = signature.bind(*arguments, **options)
                given.apply_defaults()
                seen._observe(given.arguments)
                arguments, options = given.args, given.kwargs
            return start(*arguments, **options)

        return observed

    def _observe(self, given: dict[str, Any]) -> None:
        """Have the ranks observed that are about to be started with these arguments.

        A process that is forked inherits what observes this one, and says nothing of its own.
        """
        if given["start_method"] == "fork" or len(self._launches) >= MOST:
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="diagnose-"))
        folder = self._folder / str(len(self._launches))
        folder.mkdir()
        launch = Launch(folder, int(given["nprocs"]), self._script, self._options)
        given["fn"] = _Pickled(given["fn"], launch)
        self._launches.append(launch)


class _Pickled:
    """A function that is itself again where it is unpickled, after `begin` was called there."""

    def __init__(self, function: Any, launch: Launch) -> None:
        self._function, self._launch, self._times = function, launch, 0

    def __reduce__(self) -> tuple[Any, ...]:
        self._times += 1  # once for each rank, in order
        return begin, (self._function, self._times - 1, self._launch)

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def begin(function: Any, number: int, launch: Launch) -> Any:
    """Observe this process from now on as a rank of a launch, and return the function. Never raises."""
    state = random.getstate()  # importing rich draws from it
    with contextlib.suppress(Exception):
        from diagnostics.run.ranks.spawned_session import SpawnedSession

        SpawnedSession(number, launch).begin()
    random.setstate(state)
    return function
