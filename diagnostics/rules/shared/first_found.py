"""Judges several things of one kind, each as if it were the only one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable

T = TypeVar("T")


def first_found(things: Iterable[T], judge: Callable[[T], Finding | None]) -> Finding | None:
    """Return the first finding, if any.

    Raises:
        NotApplicable: none could be judged; the reason is that of the last.
    """
    reason: NotApplicable | None = None
    judged = False
    for thing in things:
        try:
            finding = judge(thing)
        except NotApplicable as why:
            reason = why
            continue
        judged = True
        if finding is not None:
            return finding
    if not judged and reason is not None:
        raise reason
    return None
