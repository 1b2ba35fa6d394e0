"""Classifies a crash by the recognisers of every framework."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from diagnostics.collectors.tracebacks.unknown_errors import entries
from diagnostics.facts.crash import KnownFailure, Symptom

from . import (
    cuda,
    keras,
    out_of_memory,
    processes,
    pytorch,
    retained,
    shapes,
    versions,
)
from .by_frames import line_cause
from .frames import Crash, Recogniser
from .live.cause import Proof
from .live.expression import told
from .messages import known

RECOGNISERS: tuple[Recogniser, ...] = (
    *pytorch.RECOGNISERS,
    *keras.RECOGNISERS,
    *cuda.RECOGNISERS,
    *out_of_memory.RECOGNISERS,
    *retained.RECOGNISERS,
)

NEXT: tuple[Recogniser, ...] = (
    *pytorch.NEXT,
    *processes.RECOGNISERS,
    *versions.RECOGNISERS,
    *shapes.RECOGNISERS,
    known.last,
)
"""Asked in order if none of `RECOGNISERS` knows the crash: these know a message alone, others also what led to it.
A wrong shape comes late, because it may have a cause that others know."""


def symptoms(crash: Crash, cut: bool = True) -> list[Symptom]:
    """Return what is recognised in a crash; empty if nothing is.

    Args:
        crash: an exception, or the text of one.
        cut: whether a known sentence counts that lacks its numbers.
    """
    if crash.proof is not None and crash.proof.is_whole:
        return [_proved(crash.proof, crash)]
    found = _of_message(crash, cut)
    known = [fact for fact in found if isinstance(fact, KnownFailure)]
    if crash.proof is not None and len(known) == len(found):
        return [_proved(crash.proof, crash, *known)]
    return [_with_values(fact, crash) for fact in found]


_FIRST_SENTENCE = re.compile(r"[.:] (?=[A-Z])")


def _with_values(fact: Symptom, crash: Crash) -> Symptom:
    """Add what the failed line held to a cause that the message alone told, after its first sentence.

    A cause with numbers of a library's own check has its values already, and under better names.
    """
    values = told(crash.facts)
    if not values or not isinstance(fact, KnownFailure) or fact.rule not in entries("about_values"):
        return fact
    if not crash.facts.frames[-1].yours and re.search(r"\d", fact.cause):
        return fact
    first, *rest = _FIRST_SENTENCE.split(fact.cause, maxsplit=1)
    return replace(fact, cause=" ".join((f"{first.rstrip('.')}.", values, *rest)))


def _proved(proof: Proof, crash: Crash, known: KnownFailure | None = None) -> KnownFailure:
    """Report what the values prove, before what the message is usually about."""
    said = crash.facts.first_line or crash.facts.exception
    if known is None:
        return KnownFailure(proof.rule, proof.cause, proof.fixes, said)
    return replace(known, cause=f"{proof.cause} {known.cause}", fixes=(*proof.fixes, *known.fixes))


def _of_message(crash: Crash, cut: bool) -> list[Symptom]:
    certain = list(islice(_each((known.certain, line_cause), crash), 1))
    others = (*NEXT, known.cut) if cut else NEXT
    return certain or list(_each(RECOGNISERS, crash)) or list(islice(_each(others, crash), 1))


def _each(recognisers: Iterable[Recogniser], crash: Crash) -> Iterator[Symptom]:
    return (fact for recognise in recognisers if (fact := _recognised(recognise, crash)) is not None)


def _recognised(recognise: Recogniser, crash: Crash) -> Symptom | None:
    for seen in (crash, Crash(crash.facts, log=crash.log)):
        with contextlib.suppress(Exception):  # variables can be anything, and a pasted message may be broken
            return recognise(seen)
    return None
