"""The second look: examines models when the script has ended, where nothing can disturb it any longer."""

from __future__ import annotations

import _thread
import contextlib
import io
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from diagnostics.facts.dependence import DependenceFacts
from diagnostics.report.build import extended
from diagnostics.report.report import Report, StageResult
from diagnostics.text.join import count_of

if TYPE_CHECKING:
    from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass
    from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstStepPipeline

NAME = "second look"
SHARE, LEAST_S, MOST_S = 0.1, 1.0, 30.0  # of the run's duration, and its bounds
MOST_LOOPS = 4  # loops of a script that are kept
MOST_FREED = 64 * 2**20  # bytes of models that the script has freed, all together
DEPTH = 4  # of nested containers in the attributes of a freed model


def budget(wanted: float | None, ran: float) -> float:
    """Return the seconds that it may take; `wanted`: None for a share of those that the script `ran`."""
    return min(max(SHARE * ran, LEAST_S), MOST_S) if wanted is None else wanted


@dataclass
class _Loop:
    """One loop of the script; see `SecondLook.keep`."""

    model: Any
    kept: KeptPass
    report: Report | None = None


class SecondLook:
    """Keeps the first batch of each loop and its model; looks at them on request.

    Memory: at most 16 MiB for each of the first four loops, for its batch, and 64 MiB of models that the script
    has freed. A model that the script still holds at its end costs nothing.
    """

    def __init__(self) -> None:
        self._loops: dict[int, _Loop] = {}  # by the id of the training, which lives as long
        self._freed = 0

    def keep(self, training: Any, model: Any, step: FirstStepPipeline) -> None:
        """Keep the first batch of a loop.

        Args:
            training: whose report is to be extended.
            model: a weak twin of the loop's model, which does not keep that alive.
            step: its first step.
        """
        if len(self._loops) >= MOST_LOOPS or id(training) in self._loops:
            return
        from diagnostics.collectors.pytorch.dependence.kept_pass import is_callable, keep_pass

        kept = keep_pass(step.seen) if is_callable(model) else None
        if kept is not None:
            self._loops[id(training)] = _Loop(model, kept)

    def freed(self, training: Any) -> None:
        """Drop a model that the script has freed, unless it is small and plain."""
        loop = self._loops.get(id(training))
        if loop is None:
            return
        size = _size(loop.model)
        if size is None or self._freed + size > MOST_FREED:
            del self._loops[id(training)]
        else:
            self._freed += size

    def look(self, trainings: list[Any], seconds: float) -> StageResult | None:
        """Examine each model, and extend the report of its training.

        Args:
            trainings: objects with an attribute ``examined``, a report or None, which is replaced.
            seconds: after which to stop.

        Returns:
            The stage for the report; None if nothing was kept.
        """
        if not self._loops:
            return None
        begun, seen, reasons = time.monotonic(), 0, list[str]()
        try:
            with _interrupted_after(seconds), _silent():
                for training in trainings:
                    loop = self._loops.pop(id(training), None)
                    if loop is None:
                        continue
                    facts = _facts(loop, begun + seconds)
                    if isinstance(facts, str):
                        reasons.append(facts)
                        continue
                    seen += 1
                    if training.examined is not None:
                        training.examined = extended(training.examined, (facts,))
        except KeyboardInterrupt:
            over = time.monotonic() - begun >= seconds
            reasons.append(f"stopped after {seconds:.3g} s" if over else "interrupted")
        finally:
            self._loops.clear()
        if not seen:
            return StageResult(NAME, "not judged", "; ".join(dict.fromkeys(reasons)))
        took = time.monotonic() - begun
        detail = f"what the answers of {count_of(seen, 'model')} depend on, in {took:.1f} s"
        return StageResult(NAME, "passed", "; ".join([detail, *dict.fromkeys(reasons)]))


def _facts(loop: _Loop, deadline: float) -> DependenceFacts | str:
    """Measure one model; return the reason if that must not be done."""
    from diagnostics.collectors.pytorch.dependence.kept_pass import objection, subject_of
    from diagnostics.collectors.pytorch.dependence.measure import measure

    if (why := objection(loop.model)) is not None:
        return why
    try:
        subject = subject_of(loop.model, loop.kept, deadline)
    except Exception as error:  # a class that cannot be copied
        return f"its model cannot be copied ({type(error).__name__})"
    return replace(measure(subject), trained=True)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Let nothing be printed."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


@contextlib.contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt within at Ctrl-C, whatever the script's handler, and after these seconds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    lock, over = threading.Lock(), False

    def end() -> None:
        with lock:
            if not over:
                _thread.interrupt_main()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    before: Any = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        yield
    finally:
        with lock:
            over = True
        timer.cancel()
        if before is not None:  # one that was not installed from Python cannot be put back
            signal.signal(signal.SIGINT, before)


def _size(model: Any) -> int | None:
    """Return the bytes that a model keeps alive; None if it holds what may notice: an open file, a ``__del__``."""
    counted = 0

    def plain(value: Any, depth: int) -> bool:
        nonlocal counted
        kind = type(value)
        if kind.__module__ == "builtins" and not isinstance(value, dict | list | tuple | set | frozenset):
            return not hasattr(kind, "__next__")
        if hasattr(value, "nbytes"):
            counted += int(value.nbytes)
            return True
        if depth > DEPTH or hasattr(kind, "__del__"):
            return False
        parts = _parts(value)
        return parts is not None and all(plain(part, depth + 1) for part in parts)

    return counted if all(plain(m, 0) for m in _modules(model)) else None


def _modules(model: Any) -> list[Any]:
    return list(model.modules())


def _parts(value: Any) -> list[Any] | None:
    """List what an object holds, the modules within a module apart; None if that cannot be seen."""
    if isinstance(value, dict):
        return [part for part in value.values() if not _is_module(part)]
    if isinstance(value, list | tuple | set | frozenset):
        return [part for part in value if not _is_module(part)]
    if callable(value) and not _is_module(value):
        return []
    held: Callable[..., Any] | None = getattr(value, "__dict__", None)
    return [part for part in held.values() if not _is_module(part)] if isinstance(held, dict) else None


def _is_module(value: Any) -> bool:
    return hasattr(value, "named_modules")
