"""The second look: examines models when the script has ended, where nothing can disturb it any longer."""

from __future__ import annotations

import _thread
import contextlib
import inspect
import io
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from diagnostics.engine.finding import Severity
from diagnostics.facts.experiments import Experiments
from diagnostics.facts.inputs import PromptEnds
from diagnostics.facts.trials import OverfitFacts
from diagnostics.report.build import extended
from diagnostics.report.contents import StageResult
from diagnostics.text.join import listed

NAME = "second look"
SHARE, LEAST_S, MOST_S = 0.1, 1.0, 30.0  # of the run's duration, and its bounds
LEAST_UNLEARNED_S = 10.0  # the lower bound if a run did not learn: its causes are worth the time
PATIENT = 0.8  # of its time, after which nothing more is measured and what was measured counts; then it is cut off
MOST_LOOPS = 4  # loops of a script that are kept
MOST_FREED = 64 * 2**20  # bytes of models that the script has freed, all together
DEPTH = 4  # of nested containers in the attributes of a freed model
OF_TORCH = {"dtype", "device", "layout", "memory_format"}  # values as plain as numbers


def budget(wanted: float | None, ran: float, unlearned: bool = False) -> float:
    """Return the seconds that it may take.

    Args:
        wanted: by the user; None for a share of the seconds that the script ran.
        ran: the seconds that the script ran.
        unlearned: whether one of its trainings did not learn.
    """
    least = LEAST_UNLEARNED_S if unlearned else LEAST_S
    return min(max(SHARE * ran, least), MOST_S) if wanted is None else wanted


@dataclass(frozen=True)
class Unlearned:
    """Says that a run did not learn.

    Attributes:
        severity: of the findings that say so. A note: it ended no better than a constant prediction, which may be
            right. None: no finding does, but its loss has not fallen.
        explained: whether an error or a warning names the cause.
        level: its final loss, if it learned something but too little; infinite if it learned nothing.
    """

    severity: Severity | None
    explained: bool
    level: float = math.inf


Symptom = Callable[[], Unlearned | None]
"""Returns how a run shows that it did not learn; None if nothing does."""
Look = Callable[[float, Symptom], tuple[Any, ...] | str]
"""Takes a deadline of `time.monotonic`; returns facts, and why there are no others, or only why there are none.

A function among the facts is called for further ones when those are safe: it may be cut off.
"""


class SecondLook:
    """Keeps what looks at the models of a script's trainings; looks at them on request.

    Memory: at most 16 MiB for each of the first four trainings, for its batch, as much for its first weights, as
    much for the batches of its experiments, and 64 MiB of models that the script has freed. A model that the
    script still holds at its end costs nothing.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Look, Any]] = {}  # by the id of the training, which lives as long
        self._freed = 0

    def wants(self, training: Any) -> bool:
        """Whether to call `keep` for a training."""
        return len(self._kept) < MOST_LOOPS and id(training) not in self._kept

    def keep(self, training: Any, look: Look | None, model: Any = None) -> None:
        """Keep a way to look at a training.

        Args:
            training: whose report is to be extended.
            look: examines its model; None for nothing.
            model: a weak twin of a module, which `look` would keep after the script has freed it; see `freed`.
        """
        if look is not None and self.wants(training):
            self._kept[id(training)] = look, model

    def keeps(self, training: Any) -> bool:
        """Return whether a training is looked at again."""
        return id(training) in self._kept

    def freed(self, training: Any) -> None:
        """Drop a model that the script has freed, unless it is small and plain."""
        if id(training) not in self._kept:
            return
        size = _size(self._kept[id(training)][1])
        if size is None or self._freed + size > MOST_FREED:
            del self._kept[id(training)]
        else:
            self._freed += size

    def look(
        self, trainings: list[Any], seconds: float, symptom: Callable[[Any], Unlearned | None] = lambda _: None
    ) -> StageResult | None:
        """Examine each model, and extend the report of its training.

        Args:
            trainings: objects with an attribute ``examined``, a report or None, which is replaced.
            seconds: after which to stop.
            symptom: how a training shows that it did not learn; see `Symptom`.

        Returns:
            The stage for the report; None if nothing was kept.
        """
        if not self._kept:
            return None
        begun, seen, trained, tried, reasons = time.monotonic(), 0, 0, 0, list[str]()
        try:
            with _interrupted_after(seconds), _silent():
                for training in trainings:
                    look, _ = self._kept.pop(id(training), (None, None))
                    if look is None:
                        continue
                    facts = look(begun + PATIENT * seconds, partial(symptom, training))
                    if isinstance(facts, str):
                        reasons.append(facts)
                        continue
                    seen += not (facts and isinstance(facts[0], str))  # a reason comes first if a copy failed
                    while facts:
                        reasons += [why for why in facts if isinstance(why, str)]
                        later = [fact for fact in facts if callable(fact)]
                        facts = tuple(fact for fact in facts if not isinstance(fact, str) and not callable(fact))
                        if any(getattr(other, "continues", None) is training for other in trainings):
                            # The prompts may be like those of the later training.
                            facts = tuple(fact for fact in facts if not isinstance(fact, PromptEnds))
                        tried += any(isinstance(fact, Experiments) for fact in facts)
                        trained += any(isinstance(fact, OverfitFacts) for fact in facts)
                        if training.examined is not None:
                            training.examined = extended(training.examined, facts)
                        facts = tuple(fact for further in later for fact in further())
        except KeyboardInterrupt:
            over = time.monotonic() - begun >= seconds
            untested = "" if seen else ", before it had tested what the predictions depend on"
            reasons.append((f"stopped after {seconds:.3g} s" if over else "interrupted") + untested)
        finally:
            self._kept.clear()
        if not seen:
            return StageResult(NAME, "not judged", "; ".join(dict.fromkeys(reasons)))
        took = time.monotonic() - begun
        done = [f"tested what the predictions {'' if seen == 1 else f'of {seen} models '}depend on"]
        if trained:
            done.append(f"trained {'a copy' if trained == 1 else 'copies'} on one batch")
        if tried:
            done.append("ran experiments on copies")
        detail = f"{listed(done)} in {max(took, 0.1):.1f} s"
        return StageResult(NAME, "passed", "; ".join([detail, *dict.fromkeys(reasons)]))


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
    """Return the bytes that a module keeps alive; None if it holds what may notice: a file, a ``__del__``."""
    counted = 0

    def plain(value: Any, depth: int) -> bool:
        nonlocal counted
        kind = type(value)
        if kind.__module__ == "builtins" and not isinstance(value, dict | list | tuple | set | frozenset):
            return not hasattr(kind, "__next__")
        if kind is inspect.Signature or (kind.__module__ == "torch" and kind.__name__ in OF_TORCH):
            return True
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
