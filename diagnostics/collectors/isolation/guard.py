"""Keeps faults of this library out of the user's program: they become lines of the report."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from diagnostics.errors import message_of, typed_message

from .recording import is_recorded, uncompiled
from .user_modes import call_without_user_modes, is_overseen

_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "OOM when allocating")


def is_out_of_memory(fault: BaseException) -> bool:
    """Whether an exception says only that no memory is left, on the host or on a device."""
    return isinstance(fault, MemoryError) or any(said in message_of(fault) for said in _OUT_OF_MEMORY)


def is_device_failure(fault: BaseException) -> bool:
    """Whether an exception is what every PyTorch call raises once a kernel has failed."""
    kind = getattr(sys.modules.get("torch"), "AcceleratorError", None)
    return kind is not None and isinstance(fault, kind)


class FaultGuard:
    """Runs work of this library inside the user's program, and never raises into it.

    `run` does the work of a named part, and switches the part off after its first fault. `attempt` belongs to no
    part: it hands each fault to `on_fault`, and nothing is switched off. Both set the user's modes of PyTorch
    aside, and skip the work while a compiler or tracer records this thread; see `is_recorded`.

    Attributes:
        faults: by part, the fault of the library; empty where the script had broken what the part needs.
        uncovered: by part, why it could not be watched. None if there is no place to say so: then running out of
            memory counts as a fault.
        unusual: a description of tensors in the model that lack some operations; empty if there are none.
    """

    def __init__(
        self,
        faults: dict[str, str] | None = None,
        uncovered: dict[str, str] | None = None,
        message: str = "watching the {part} ended: {fault}",
        on_fault: Callable[[Exception], object] | None = None,
    ) -> None:
        """Guard with all parts switched on.

        Args:
            faults: filled by `run`.
            uncovered: filled by `run`.
            message: of a fault in `run`, with the fields ``part`` and ``fault``.
            on_fault: takes the faults of `attempt`; None to drop them.
        """
        self.faults: dict[str, str] = {} if faults is None else faults
        self.uncovered = uncovered
        self.unusual = ""
        self._message, self._on_fault = message, on_fault

    def run(self, part: str, work: Callable[..., None], *arguments: Any) -> None:
        """Do a part's work, unless it has failed before."""
        if not is_recorded():
            self.run_unrecorded(part, work, *arguments)

    def run_unrecorded(self, part: str, work: Callable[..., None], *arguments: Any) -> None:
        """Do the same in a hook that has asked `is_recorded` itself."""
        if part in self.faults:
            return
        begun = own_work_begins() if _is_measured else 0.0
        try:
            if is_overseen():
                call_without_user_modes(work, *arguments)
            else:  # a call less: this is done five times a step
                work(*arguments)
        except Exception as fault:
            self.switch_off(part, fault)
        finally:
            if begun:
                own_work_ends(begun)

    def attempt(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Return what the work returns; None if it raises, and where it is left out."""
        if is_recorded():
            return None
        begun = own_work_begins() if _is_measured else 0.0
        try:
            return call_without_user_modes(work, *arguments, **options)
        except Exception as fault:
            if self._on_fault is not None:
                self._on_fault(fault)
            return None
        finally:
            if begun:
                own_work_ends(begun)

    def hook(self, part: str, work: Callable[..., None], number: int) -> Callable[..., None]:
        """Return a hook that does a part's work for the optimizer of that number."""
        return functools.partial(self.run, part, work, number)

    def switch_off(self, part: str, fault: Exception) -> None:
        """Switch a part off, and record why."""
        said, why = typed_message(fault), ""
        if is_device_failure(fault):
            why = "the device failed, and nothing can be read from it now"
        elif is_out_of_memory(fault):
            why = "memory ran out"
        elif self.unusual:
            why = f"{self.unusual} do not allow it: {said}"
        if why and self.uncovered is not None:  # the script's failure, not ours
            self.faults[part], self.uncovered[part] = "", why
        else:
            self.faults[part] = self._message.format(part=part, fault=said)


for _called in (FaultGuard.run, FaultGuard.run_unrecorded, FaultGuard.attempt):
    uncompiled(_called.__code__)


class _Within(threading.local):
    """Whether this thread is within guarded work; calls in it are part of it."""

    work = False


_within = _Within()
_is_measured = False  # True after the first request
_seconds = 0.0  # of all threads: a backward pass on an accelerator calls our hooks in a thread of its own


def own_seconds() -> float:
    """Return the seconds since this was first asked. Work that is under way counts once it has ended."""
    global _is_measured
    _is_measured = True
    return _seconds


def own_work_begins() -> float:
    """Return the time, for `own_work_ends`; 0 within other work of this library, and until the first request."""
    if not _is_measured or _within.work:
        return 0.0
    _within.work = True
    return time.perf_counter()


def own_work_ends(begun: float) -> None:
    """Count the work since; `begun`: what `own_work_begins` returned."""
    global _seconds
    if begun:
        _within.work = False
        _seconds += time.perf_counter() - begun
