"""Everything that is recognised in a crash, whichever framework it came from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from diagnostics.crash_facts import Symptom

from . import cuda_crashes, kept_graphs, keras_crashes, memory_crashes, torch_crashes
from .frames import Crash

RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (
    *torch_crashes.RECOGNISERS,
    *keras_crashes.RECOGNISERS,
    *cuda_crashes.RECOGNISERS,
    *memory_crashes.RECOGNISERS,
    *kept_graphs.RECOGNISERS,
)


def symptoms(crash: Crash) -> list[Symptom]:
    """Return what is recognised in a crash; empty if nothing is."""
    return [fact for recognise in RECOGNISERS if (fact := _recognised(recognise, crash)) is not None]


def _recognised(recognise: Callable[[Crash], Symptom | None], crash: Crash) -> Symptom | None:
    for seen in (crash, Crash(crash.facts, log=crash.log)):
        with contextlib.suppress(Exception):  # variables can be anything, and a pasted message may be broken
            return recognise(seen)
    return None
