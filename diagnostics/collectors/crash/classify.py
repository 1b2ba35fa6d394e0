"""Classifies a crash by the recognisers of every framework."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from diagnostics.facts.crash import Symptom

from . import (
    cuda,
    keras,
    keras_shapes,
    out_of_memory,
    processes,
    pytorch,
    pytorch_shapes,
    usage,
)
from .frames import Crash
from .messages import known
from .named_modules import with_module
from .retained import graphs, models
from .setup import checkpoints, examples, misused_index, none_values, settings, unimported_names, versions

RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (
    *pytorch.RECOGNISERS,
    *keras.RECOGNISERS,
    *cuda.RECOGNISERS,
    *out_of_memory.RECOGNISERS,
    *graphs.RECOGNISERS,
    *models.RECOGNISERS,
    *examples.FROM_DEVICE,
)

NEXT: tuple[Callable[[Crash], Symptom | None], ...] = (
    *usage.RECOGNISERS,
    *processes.RECOGNISERS,
    *examples.RECOGNISERS,
    *settings.RECOGNISERS,
    checkpoints.unreadable,
    checkpoints.lacking_part,
    *versions.RECOGNISERS,
    *unimported_names.RECOGNISERS,
)
"""Asked if none of `RECOGNISERS` knows the crash: these know a message alone, others also what led to it."""

LAST: tuple[Callable[[Crash], Symptom | None], ...] = (
    *pytorch_shapes.RECOGNISERS,
    *keras_shapes.RECOGNISERS,
    checkpoints.weights,
    *examples.LAST,
    known.last,
)
"""Asked in order, and if nothing else recognises the crash: a wrong shape may have a cause that others know."""


def symptoms(crash: Crash, cut: bool = True) -> list[Symptom]:
    """Return what is recognised in a crash; empty if nothing is.

    Args:
        crash: an exception, or the text of one.
        cut: whether a known sentence counts that lacks its numbers.
    """
    crash = Crash(with_module(crash.facts), crash.variables, crash.log)
    for recognise in (known.certain, none_values.none_value, misused_index.misused_index):
        if (certain := _recognised(recognise, crash)) is not None:
            return [certain]
    others = (*NEXT, *LAST, known.cut) if cut else (*NEXT, *LAST)
    return list(_each(RECOGNISERS, crash)) or list(islice(_each(others, crash), 1))


def _each(recognisers: Iterable[Callable[[Crash], Symptom | None]], crash: Crash) -> Iterator[Symptom]:
    return (fact for recognise in recognisers if (fact := _recognised(recognise, crash)) is not None)


def _recognised(recognise: Callable[[Crash], Symptom | None], crash: Crash) -> Symptom | None:
    for seen in (crash, Crash(crash.facts, log=crash.log)):
        with contextlib.suppress(Exception):  # variables can be anything, and a pasted message may be broken
            return recognise(seen)
    return None
