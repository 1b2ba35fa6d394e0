"""Finds a script's own training loops for Keras, around a `tf.GradientTape`.

A loop is an optimizer whose `apply` is called outside of `fit`. In eager code, gradients and loss are visible. In
a `tf.function`, only the optimizer's counter, the function's result and the weights are.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
from keras.src.optimizers.base_optimizer import BaseOptimizer
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.facts.loss_graph import LossGraph

from .loss_graph import loss_graph
from .tape_pass import TapeRecorder
from .tape_watcher import TapeLoopWatcher
from .unapplied import UnappliedGradients


class TapeLoopFinder:
    """Makes a `TapeLoopWatcher` for each optimizer that steps outside of `fit`, and feeds it.

    What the first loop began with is kept for the second look until another loop begins; none of the others.

    Attributes:
        unapplied: gradients that are taken while no optimizer steps.
    """

    def __init__(
        self,
        began: Callable[[TapeLoopWatcher, Any, list[Any]], object],
        fault: Callable[[Exception], object],
        every: int = 20,
    ) -> None:
        """Start observing, until `close`.

        Args:
            began: called with each loop when it begins, its optimizer and its variables.
            fault: called with each fault of this library; nothing is raised into the script.
            every: steps between two samples of the weights.
        """
        self._began, self._every = began, every
        self._safely = FaultGuard(on_fault=fault).attempt
        self._loops: IdentityMap[Any, TapeLoopWatcher] = IdentityMap()
        self._losses: IdentityMap[Any, Any] = IdentityMap()  # by the first gradient of a tape
        self._found = 0
        self._graph: LossGraph | None = None  # of the latest loss that was traced
        self._within = threading.local()
        self._paused = 0
        self._opened = self._asked = 0  # tapes, and gradients taken from them, since the latest step
        self._patches = Patches()
        self._closed = False
        self._recorder = TapeRecorder(self._safely)
        self.unapplied = UnappliedGradients()
        self._patches.before(BaseOptimizer, "__init__", self._made)
        self._patches.around(tf.GradientTape, "__enter__", self._enter)
        self._patches.around(tf.GradientTape, "gradient", self._gradient)
        self._patches.around(BaseOptimizer, "apply", self._outermost("apply", self._apply))
        self._patches.around(Function, "__call__", self._outermost("call", self._call))

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Observe nothing within: a callback watches `fit`."""
        self._paused += 1
        self._safely(self.unapplied.end)
        try:
            yield
        finally:
            self._paused -= 1

    def close(self) -> None:
        """Remove all patches."""
        self._patches.undo()
        self._recorder.close()
        self._closed = True  # for a patch that stays because it was patched over
        self._paused += 1

    def graph(self) -> LossGraph | None:
        """Return the graph of the loss that was traced last, and forget it; None if there is none."""
        seen, self._graph = self._graph, None
        return seen

    def _outermost(self, name: str, work: Callable[..., Any]) -> Callable[[Any], Any]:
        """Return a `make` for `Patches.around`: `work` does the outermost call, calls within it pass through."""
        finder = self

        def make(plain: Any) -> Any:
            def observed(*arguments: Any, **options: Any) -> Any:
                if finder._paused or is_own_run() or getattr(finder._within, name, False):
                    return plain(*arguments, **options)
                setattr(finder._within, name, True)  # an optimizer may call another's `apply`
                try:
                    return work(plain, *arguments, **options)
                finally:
                    setattr(finder._within, name, False)

            return observed

        return make

    def _made(self, *_arguments: Any, **_options: Any) -> None:
        if not self._paused and not is_own_run():
            self.unapplied.optimizers += 1

    def _enter(self, plain: Any) -> Any:
        finder = self

        def enter(tape: Any) -> Any:
            if not finder._paused and not is_own_run():
                finder._safely(finder._recorder.begins)
                finder._opened += tf.executing_eagerly()
            return plain(tape)

        return enter

    def _gradient(self, plain: Any) -> Any:
        finder = self

        def gradient(tape: Any, target: Any, *arguments: Any, **options: Any) -> Any:
            gradients = plain(tape, target, *arguments, **options)
            if finder._closed or is_own_run():
                return gradients
            if not finder._paused:
                sources = arguments[0] if arguments else options.get("sources")
                finder._safely(finder._recorder.ended, sources, gradients)
                finder._safely(finder.unapplied.asked, target, sources)
            if not tf.executing_eagerly():  # also within `fit`
                finder._safely(finder._read, target)
            elif not finder._paused:
                finder._safely(finder._note, target, gradients)
                finder._asked += 1
            return gradients

        return gradient

    def _read(self, target: Any) -> None:
        symbolic = isinstance(target, tf.Tensor) and target.shape.rank == 0
        self._graph = loss_graph(target) if symbolic else None

    def _note(self, target: Any, gradients: Any) -> None:
        if not isinstance(target, tf.Tensor) or target.shape.rank != 0 or not target.dtype.is_floating:
            return
        first = next((g for g in tf.nest.flatten(gradients) if g is not None), None)
        if first is not None:
            self._losses[first] = target

    def _apply(self, plain: Any, optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
        grads = list(grads)
        given = None if trainable_variables is None else list(trainable_variables)
        self._safely(self.unapplied.end)
        loop = self._safely(self._loop, optimizer, grads, given)
        if loop is None or not tf.executing_eagerly():
            return plain(optimizer, grads, given)
        loss = next((self._losses.pop(g) for g in grads if g in self._losses), None)
        self._safely(loop.before)
        result = plain(optimizer, grads, given)
        self._safely(loop.after, loss, grads)
        loop.tapes.stepped(self._opened - self._asked)
        self._opened = self._asked = 0
        return result

    def _loop(self, optimizer: Any, grads: list[Any], variables: list[Any] | None) -> TapeLoopWatcher | None:
        """Return the loop of an optimizer; a new one at its first step."""
        loop = self._loops.get(optimizer)
        if loop is None:
            held = variables if variables is not None else list(optimizer._trainable_variables)
            if len(held) != len(grads) or not all(isinstance(v, keras.Variable | tf.Variable) for v in held):
                return None
            eager = tf.executing_eagerly()
            loop = self._loops[optimizer] = TapeLoopWatcher(optimizer, held, eager, self._every)
            loop.graph = self.graph()
            self._found += 1
            if self._found == 1:
                loop.seen = self._recorder.take(optimizer, held)
            else:
                self._recorder.release()
            self._began(loop, optimizer, held)
        return loop

    def _call(self, plain: Any, function: Any, *arguments: Any, **options: Any) -> Any:
        if not tf.executing_eagerly():  # a nested one, while tracing
            return plain(function, *arguments, **options)
        known = [loop for loop in self._loops.values() if not loop.eager]
        for loop in known:
            self._safely(loop.before)
        result = plain(function, *arguments, **options)
        self._safely(self._recorder.called, arguments, options)
        self._safely(self.unapplied.called, function)
        for loop in [loop for loop in self._loops.values() if not loop.eager]:
            self._safely(loop.called, result, len(self._loops) == 1)
        return result
