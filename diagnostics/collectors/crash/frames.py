"""Reads the frames of an exception, and their variables."""

from __future__ import annotations

import contextlib
import dis
import linecache
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, TypeVar

from diagnostics.errors import InvalidInput, message_of
from diagnostics.facts.crash import CrashFacts, FrameFacts, Symptom
from diagnostics.facts.where import LIBRARY, is_user_code, shorten

from .live.cause import Proof, proof_of
from .live.expression import Expression, expression_of, facts_of
from .messages.table import Found, find


@dataclass(frozen=True)
class Crash:
    """A crash, with the variables of each of its frames; `variables` is empty if only the text is known.

    Attributes:
        log: all of the text that it was found in; what a device prints stands there, outside the traceback.
        expression: of the user's innermost line, that failed or made the call that did; None if it is not known.
        proof: what its values prove.
    """

    facts: CrashFacts
    variables: tuple[Mapping[str, Any], ...] = ()
    log: str = ""
    expression: Expression | None = None
    proof: Proof | None = None

    def inward(self, *functions: str) -> Iterator[Mapping[str, Any]]:
        """Yield the variables of the frames, innermost first; only of these functions if any are named."""
        for frame, variables in zip(reversed(self.facts.frames), reversed(self.variables), strict=False):
            if not functions or frame.function in functions:
                yield variables

    def own(self) -> list[Mapping[str, Any]]:
        """Return the variables of the user's own frames, outermost first."""
        held = zip(self.facts.frames, self.variables, strict=False)
        return [variables for frame, variables in held if frame.yours]


Recogniser = Callable[[Crash], Symptom | None]
"""Returns what it recognises in a crash; None if it does not know it."""
_Asked = TypeVar("_Asked", bound=Recogniser)
Reader = Callable[[Crash, Found], Symptom | None]
"""Does the same for a crash whose message has a row of the table."""


class Recognisers(list[Recogniser]):
    """Recognisers in the order in which they are written, which is that in which they are asked."""

    def asked(self, recognise: _Asked) -> _Asked:
        """Add a recogniser."""
        self.append(recognise)
        return recognise

    def reading(self, *names: str) -> Callable[[Reader], Reader]:
        """Add what reads a row of the table that asks for it by one of these names."""

        def add(read: Reader) -> Reader:
            def recognise(crash: Crash) -> Symptom | None:
                found = find(crash.facts.message, *names)
                return None if found is None else read(crash, found)

            self.append(recognise)
            return read

        return add


def is_ours(error: BaseException) -> bool:
    """Whether this library raised an exception, which then says nothing about the user's program.

    What it raises on purpose is about a call of the user's. A call that a wrapper of ours has passed on may fail
    in C, which leaves no frame: then the wrapper's is the innermost.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or isinstance(error, InvalidInput):
        return False
    code = trace.tb_frame.f_code
    if not code.co_filename.startswith(LIBRARY):
        return False
    failed = next((one for one in dis.get_instructions(code) if one.offset == trace.tb_lasti), None)
    return failed is None or failed.opname != "CALL_FUNCTION_EX"


def read_exception(error: BaseException) -> Crash:
    """Read a live exception. Holds on to the frames' variables only as long as the result lives."""
    frames, variables = [], []
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        code = linecache.getline(file, line, frame.f_globals).strip()
        frames.append(FrameFacts(shorten(file), line, frame.f_code.co_name, code or None, is_user_code(file)))
        variables.append(dict(frame.f_locals))
    facts = CrashFacts(type(error).__name__, message_of(error), outside_dispatch(frames), live=True)
    with contextlib.suppress(Exception):  # variables can be anything
        return _with_expression(error, facts, tuple(variables))
    return Crash(facts, tuple(variables))


def _with_expression(error: BaseException, facts: CrashFacts, variables: tuple[Mapping[str, Any], ...]) -> Crash:
    """Add the expression that failed, in the user's innermost line, and the check that raised."""
    own = max((place for place, frame in enumerate(facts.frames) if frame.yours), default=None)
    traced: list[tuple[FrameType, int, int]] = []
    trace = error.__traceback__
    while trace is not None:
        traced.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    failed = None if own is None else expression_of(*traced[own])
    if failed is None:
        return Crash(facts, variables)
    last = len(traced) - 1
    raised = failed if own == last else expression_of(*traced[last])
    proof = proof_of(type(error), facts.message, failed, in_library=own != last)
    return Crash(replace(facts, failed=facts_of(failed, raised)), variables, expression=failed, proof=proof)


def outside_dispatch(frames: Iterable[FrameFacts]) -> tuple[FrameFacts, ...]:
    """Treat frames within a tensor's dispatch as not the user's own: they are the work of a device."""
    found: list[FrameFacts] = []
    dispatched = False
    for frame in frames:
        dispatched = dispatched or frame.function in ("__torch_dispatch__", "__torch_function__")
        found.append(replace(frame, yours=False) if dispatched else frame)
    return tuple(found)


def within(outer: Crash, inner: Crash) -> Crash:
    """Return `inner`, its frames preceded by those of the exception raised from it, which led there, too."""
    facts = replace(inner.facts, frames=(*outer.facts.frames, *inner.facts.frames))
    return Crash(facts, (*outer.variables, *inner.variables), outer.log, inner.expression, inner.proof)
