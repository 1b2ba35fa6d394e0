"""Removes this library's frames from tracebacks, also from those that the script itself prints or logs."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any

from diagnostics.collectors.isolation.patching import FROZEN, Patches
from diagnostics.errors import TrainingStopped

_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_SCRIPT = os.path.join(_OURS, "run", "script.py")  # whose frames lie below the script's first


def hide_library_frames(patches: Patches) -> None:
    """Let the exceptions and stacks that a script formats look as under `python`, until the patches are undone."""
    patches.around(traceback.TracebackException, "__init__", _of_exceptions)
    patches.around(traceback.StackSummary, "extract", _of_stacks)


def _of_exceptions(original: Callable[..., None]) -> Callable[..., None]:
    def replacement(
        self: Any, exc_type: Any, exc_value: Any, exc_traceback: Any, *arguments: Any, **options: Any
    ) -> None:
        if isinstance(exc_value, BaseException) and exc_value.__traceback__ is exc_traceback:
            exc_traceback = without_library_frames(exc_value)
        original(self, exc_type, exc_value, exc_traceback, *arguments, **options)

    return replacement


def _of_stacks(original: Callable[..., Any]) -> Callable[..., Any]:
    def replacement(frame_gen: Iterable[Any], *arguments: Any, **options: Any) -> Any:
        return original(_without_our_levels(frame_gen), *arguments, **options)

    return replacement


def _without_our_levels(frames: Iterable[tuple[FrameType, Any]]) -> Iterator[tuple[FrameType, Any]]:
    """Yield the frames of a stack, the innermost first, up to the script's first."""
    for frame, line in frames:
        file = frame.f_code.co_filename
        if file == _SCRIPT:
            return
        if file != FROZEN and not file.startswith(_OURS):
            yield frame, line


def without_library_frames(error: BaseException) -> TracebackType | None:
    """Remove this library's frames from an exception and its causes, and return its remaining traceback."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        link.__traceback__ = _without_ours(link.__traceback__, raised_here=isinstance(link, TrainingStopped))
        link = link.__cause__ or link.__context__
    return error.__traceback__


def _without_ours(trace: TracebackType | None, *, raised_here: bool) -> TracebackType | None:
    first = trace
    while first is not None and _file(first) in (_SCRIPT, FROZEN):
        first = first.tb_next
    before = first
    while before is not None and before.tb_next is not None:
        if _is_between(before.tb_next) or (raised_here and _file(before.tb_next).startswith(_OURS)):
            before.tb_next = before.tb_next.tb_next
        else:
            before = before.tb_next
    return first


def _is_between(trace: TracebackType) -> bool:
    """Whether a frame is one of a hook's, or leads from the framework through this library and on."""
    if _file(trace) == FROZEN:
        return True
    inner: TracebackType | None = trace
    while inner is not None and _file(inner).startswith(_OURS):
        inner = inner.tb_next
    return inner is not None and inner is not trace


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename
