"""Everything that is recognised in a crash, whichever framework it came from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from diagnostics.crash_facts import Symptom

from . import (
    cuda_crashes,
    kept_graphs,
    keras_crashes,
    keras_shape_crashes,
    memory_crashes,
    shape_crashes,
    torch_crashes,
)
from .frames import Crash

RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (
    *torch_crashes.RECOGNISERS,
    *keras_crashes.RECOGNISERS,
    *cuda_crashes.RECOGNISERS,
    *memory_crashes.RECOGNISERS,
    *kept_graphs.RECOGNISERS,
)

LAST: tuple[Callable[[Crash], Symptom | None], ...] = (
    *shape_crashes.RECOGNISERS,
    *keras_shape_crashes.RECOGNISERS,
)
"""Asked in order, and only if nothing else is recognised: shapes can be wrong for a reason that others know."""


def symptoms(crash: Crash) -> list[Symptom]:
    """Return what is recognised in a crash; empty if nothing is."""
    return list(_each(RECOGNISERS, crash)) or list(islice(_each(LAST, crash), 1))


def _each(recognisers: Iterable[Callable[[Crash], Symptom | None]], crash: Crash) -> Iterator[Symptom]:
    return (fact for recognise in recognisers if (fact := _recognised(recognise, crash)) is not None)


def _recognised(recognise: Callable[[Crash], Symptom | None], crash: Crash) -> Symptom | None:
    for seen in (crash, Crash(crash.facts, log=crash.log)):
        with contextlib.suppress(Exception):  # variables can be anything, and a pasted message may be broken
            return recognise(seen)
    return None
