"""Has a function of ours called in each rank that a script starts by `torch.multiprocessing.spawn`.

The function that a rank is to run is pickled together with ours, which the rank's process calls when it reads it:
no frame of this library lies between PyTorch and the script's function.
"""

from __future__ import annotations

import contextlib
import inspect
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.collectors.isolation.patching import Patches

Begin = Callable[[int, Any], object]


class SpawnHook:
    """Hooks into the launches of ranks from its creation to `close`."""

    def __init__(self, launched: Callable[[int], Any], begin: Begin) -> None:
        """Begin.

        Args:
            launched: called with the number of ranks when they are about to be started; returns what `begin` is to
                be given in each, which must be picklable, or None to leave this launch alone.
            begin: a function of a module, called in each rank with its number and what `launched` has returned.
                What it raises is dropped.
        """
        self._launched, self._begin = launched, begin
        self._patches, self._at_close = Patches(), contextlib.ExitStack()
        self._at_close.callback(self._patches.undo)
        self._at_close.callback(after_import("torch.multiprocessing.spawn", self._with_spawn))

    def close(self) -> None:
        """Leave launches alone from now on."""
        self._at_close.close()

    def _with_spawn(self, module: ModuleType) -> None:
        if hasattr(module, "start_processes"):
            self._patches.around(module, "start_processes", self._around)

    def _around(self, start: Callable[..., Any]) -> Callable[..., Any]:
        hook, signature = self, inspect.signature(start)

        def observed(*arguments: Any, **options: Any) -> Any:
            with contextlib.suppress(Exception):
                given = signature.bind(*arguments, **options)
                given.apply_defaults()
                hook._attach(given.arguments)
                arguments, options = given.args, given.kwargs
            return start(*arguments, **options)

        return observed

    def _attach(self, given: dict[str, Any]) -> None:
        """Attach ours to the ranks' function.

        A process that is forked inherits what observes this one, and says nothing of its own.
        """
        if given["start_method"] != "fork" and (ours := self._launched(int(given["nprocs"]))) is not None:
            given["fn"] = _Pickled(given["fn"], self._begin, ours)


class _Pickled:
    """A function that is itself again where it is unpickled, after `begin` was called there."""

    def __init__(self, function: Any, begin: Begin, ours: Any) -> None:
        self._function, self._begin, self._ours, self._times = function, begin, ours, 0

    def __reduce__(self) -> tuple[Any, ...]:
        self._times += 1  # once for each rank, in order
        return _unpickled, (self._function, self._begin, self._times - 1, self._ours)

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def _unpickled(function: Any, begin: Begin, number: int, ours: Any) -> Any:
    state = random.getstate()  # importing rich draws from it
    with contextlib.suppress(Exception):
        begin(number, ours)
    random.setstate(state)
    return function
