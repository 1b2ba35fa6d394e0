"""Judges several items of one kind in turn and returns the first finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import OutputPart, SeveralOutputs

T = TypeVar("T")


def first_found(things: Iterable[T], judge: Callable[[T], Finding | None]) -> Finding | None:
    """Return the first finding, if any.

    Raises:
        NotApplicable: none could be judged; the reason is that of the last.
    """
    reason: str | None = None  # not the exception: its traceback would hold this frame, and so the user's model
    judged = False
    for thing in things:
        try:
            finding = judge(thing)
        except NotApplicable as why:
            reason = str(why)
            continue
        judged = True
        if finding is not None:
            return finding
    if not judged and reason is not None:
        raise NotApplicable(reason)
    return None


def first_output_found(several: SeveralOutputs, judge: Callable[[OutputPart], Finding | None]) -> Finding | None:
    """Return the first finding of several outputs, if any; its message names the output.

    Raises:
        NotApplicable: no output could be judged.
    """

    def named(part: OutputPart) -> Finding | None:
        if (finding := judge(part)) is None:
            return None
        evidence = {**finding.evidence, "output": part.name}
        return replace(finding, message=f"Output '{part.name}': {finding.message}", evidence=evidence)

    return first_found(several.parts, named)
