"""Records every module's call in chosen steps, with the range of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any

from torch import nn

from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.facts.training import TraceFacts

from .module_calls import Call, calls_seen, value_range


class Trace:
    """Hooks on all modules, for the first forward pass of each step that is to be traced.

    It waits for the device at every call: that is why the steps are chosen, and few.

    Args:
        model: the one whose modules get hooks.
        steps: to be traced.
        failed: called with a fault of this library; the trace of that step is lost.
    """

    def __init__(self, model: nn.Module, steps: Collection[int], failed: Callable[[Exception], None]) -> None:
        self._model = model
        self._failed = failed
        self._open: tuple[int, list[Call], ExitStack] | None = None
        self._lost = False
        self.steps = frozenset(steps)
        self.traces: list[TraceFacts] = []

    def open(self, step: int, inputs: Any) -> None:
        """Trace the pass that is about to run.

        Args:
            step: its step.
            inputs: the model's arguments; its own hooks are running already.
        """
        self.abandon()
        self._lost = False
        self._root = Call("", self._model, 0, value_range(tensors(inputs)))
        stack = ExitStack()
        calls = stack.enter_context(calls_seen(self._model, 0, False, self._fault, whole=False))
        self._open = (step, calls, stack)

    def close(self, output: Any) -> None:
        """Remove the hooks, and store the trace; the weights are read now, before they change."""
        if self._open is None:
            return
        step, calls, _ = self._open
        self.abandon()
        if not self._lost:
            self._root.end(output)
            self.traces.append(TraceFacts(step, tuple(call.frame() for call in (*calls, self._root))))

    def abandon(self) -> None:
        """Remove the hooks."""
        if self._open is not None:
            self._open[2].close()
            self._open = None

    def _fault(self, fault: Exception) -> None:
        if not self._lost:
            self._lost = True
            self._failed(fault)
