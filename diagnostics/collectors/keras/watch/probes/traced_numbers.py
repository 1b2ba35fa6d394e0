"""Looks for Python numbers that a traced step has read, and that change while the step is not traced again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from diagnostics.collectors.keras.watch.probes import WatchProbe
from diagnostics.facts.written import IdleSetting, SettingFacts
from diagnostics.taps.keras import graph_trace
from diagnostics.taps.tap import subscribe
from diagnostics.text.join import among

ROOTS = ("train_step", "compute_loss", "call")
STALE = 8  # steps: fewer may come before a change that takes effect
OBJECTS = 200  # layers of a model that are looked at


class TracedNumbers(WatchProbe):
    """Compares the numbers among the attributes of a model, its layers and its loss, before each step."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._model = subject._model
        self._end: Callable[[], object] = lambda: None
        self._read: list[tuple[Any, str]] | None = None
        self._at_trace: dict[tuple[int, str], float] = {}
        self._stale: dict[tuple[int, str], int] = {}  # steps with another number than when they were traced
        self._steps, self._found = 0, tuple[SettingFacts, ...]()

    def on_batch(self, batch: Any) -> None:
        """Compare; the first step is traced after this."""
        self._steps += 1
        if self._read is None:
            self._read = [] if self._model.run_eagerly else [*_read_in(self._model)]
            if self._read:
                self._end = subscribe(None, (graph_trace.after, self._hear))
            self._at_trace = self._numbers()
        for key, number in self._numbers().items():
            if type(number) is float and number != self._at_trace.get(key, number):
                self._stale[key] = self._stale.get(key, 0) + 1

    def on_close(self) -> None:
        """Hear of no more traces, and let go of the model."""
        self._end()
        self._found, self._model, self._read, self._stale = tuple(self.facts()), None, [], {}

    def facts(self) -> Iterable[SettingFacts]:
        """Return the number that was not read again for the most steps."""
        yield from self._found
        key = max(self._stale, key=self._stale.__getitem__, default=None)
        if key is not None and self._stale[key] >= STALE:
            owner = next(one for one, _ in self._read or () if id(one) == key[0])
            traced, latest = self._at_trace[key], self._numbers().get(key, self._at_trace[key])
            used = among(self._stale[key], self._steps, "step")
            setting = IdleSetting(
                "traced", type(owner).__name__, key[1], f"{latest:.4g}", (), f"{traced:.4g}", used
            )
            yield SettingFacts((setting,))

    def _hear(self, *_arguments: Any, **_options: Any) -> None:
        self.subject._safely(self.part, self._traced)

    def _traced(self) -> None:
        """Begin again: what was traced has read the numbers of now."""
        self._at_trace, self._stale = self._numbers(), {}

    def _numbers(self) -> dict[tuple[int, str], float]:
        values = (((id(one), name), vars(one).get(name)) for one, name in self._read or ())
        return {key: value for key, value in values if type(value) in (int, float)}


def _read_in(model: Any) -> Iterator[tuple[Any, str]]:
    """Yield the public attributes of a model, its layers and its loss that hold a number and that a step reads."""
    for one in [*model._flatten_layers()[:OBJECTS], getattr(model, "loss", None)]:
        if hasattr(one, "__dict__") and not isinstance(one, type):
            numbers = {name for name, value in vars(one).items() if type(value) in (int, float)}
            yield from ((one, name) for name in numbers & _names(type(one)) if not name.startswith("_"))


def _names(kind: type) -> set[str]:
    """Return the names in the code of the methods that are traced, and of those that they call."""
    waiting, seen = list(ROOTS), set[str]()
    while waiting:
        if (name := waiting.pop()) in seen:
            continue
        seen.add(name)
        code = getattr(getattr(kind, name, None), "__code__", None)
        if isinstance(code, CodeType):
            waiting += code.co_names
    return seen
