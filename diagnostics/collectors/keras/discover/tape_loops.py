"""Finds a script's own training loops for Keras, around a `tf.GradientTape`.

A loop is an optimizer whose `apply` is called outside of `fit`. In eager code, gradients and loss are visible. In
a `tf.function`, only the optimizer's counter, the function's result and the weights are.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.discover.tape_watcher import UnappliedGradients
from diagnostics.collectors.keras.values import StepValues, current
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.loss_graph import LEAF, LossGraph, Node, Operand, RowsRead, Shape, rows_read
from diagnostics.facts.where import Where
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import subscribe

from .tape_pass import TapeRecorder
from .tape_watcher import TapeLoopWatcher

MOST_INDICES = 2**22  # of a `tf.gather` that are read
OPERATIONS = 5000  # next to the loss that are walked: a graph of a large model has more
SYNONYMS = {"AddV2": "Add", "DivNoNan": "Div", "Placeholder": LEAF, "RealDiv": "Div", "SelectV2": "Where"}


class TapeLoopFinder:
    """Makes a `TapeLoopWatcher` for each optimizer that steps outside of `fit`, and feeds it.

    What the first loop began with is kept for the second look until another loop begins; none of the others.

    Attributes:
        unapplied: gradients that are taken while no optimizer steps.
        made_at: by optimizer, the line of the script that created it, or that compiled a model with its name.
    """

    def __init__(
        self,
        began: Callable[[TapeLoopWatcher, Any, list[Any]], object],
        fault: Callable[[Exception], object],
        every: int = 20,
        *,
        on_step: Callable[[Any], object] = lambda optimizer: None,
        on_broken: Callable[[], object] | None = None,
    ) -> None:
        """Start observing, until `close`.

        Args:
            began: called with each loop when it begins, its optimizer and its variables.
            fault: called with each fault of this library; nothing is raised into the script.
            every: steps between two samples of the weights.
            on_step: called with the optimizer after each step, or each call of a `tf.function` with steps.
            on_broken: called once a step is not finite, in eager code before it is made. It may end the training
                by TrainingStopped: the weights, the optimizer and what the step assigned get their values from
                before. None for nothing.
        """
        self._began, self._every, self._on_step = began, every, on_step
        self._values = None if on_broken is None else StepValues(on_broken, current)
        self._assigned: IdentityMap[Any, None] = IdentityMap()  # variables that traced functions write to
        self._safely = FaultGuard(on_fault=fault).attempt
        self._loops: IdentityMap[Any, TapeLoopWatcher] = IdentityMap()
        self._losses: IdentityMap[Any, Any] = IdentityMap()  # by the first gradient of a tape
        self._found = 0
        self._graph: LossGraph | None = None  # of the latest loss that was traced
        self._stepping: IdentityMap[Any, Any] = IdentityMap()  # by optimizer whose `apply` runs: the loss
        self._paused = 0
        self._opened = self._asked = 0  # tapes, and gradients taken from them, since the latest step
        self._recorder = TapeRecorder(self._safely)
        self.unapplied = UnappliedGradients()
        self.made_at: IdentityMap[Any, Where | None] = IdentityMap()
        self._unsubscribe = subscribe(
            self._safely,
            (taps.optimizer_init.before, self._made),
            (taps.tape_enter.before, self._enter),
            (taps.tape_gradient.after, self._gradient),
            (taps.optimizer_apply.before, self._applies),
            (taps.optimizer_apply.after, self._applied),
            (taps.function_call.before, self._calls),
            (taps.function_call.after, self._called),
            *([] if self._values is None else [(taps.variable_assign.before, self._assigns)]),
        )

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
        self._unsubscribe()
        self._recorder.close()

    def graph(self) -> LossGraph | None:
        """Return the graph of the latest traced loss, or None, and forget it."""
        seen, self._graph = self._graph, None
        return seen

    # Events of the script. Each of these is called through `_safely`.

    def _made(self, optimizer: Any, *_arguments: Any, **_options: Any) -> None:
        self.made_at[optimizer] = script_line()
        if not self._paused:
            self.unapplied.optimizers += 1

    def _enter(self, _tape: Any) -> None:
        if not self._paused:
            self._recorder.begins()
            self._opened += tf.executing_eagerly()
            if self._values is not None and tf.executing_eagerly():
                self._values.clear()

    def _assigns(self, variable: Any, *_arguments: Any, **_options: Any) -> None:
        """Keep what the forward pass of a step writes to: batch norm's means, random states."""
        if self._paused or self._values is None:
            return
        if tf.executing_eagerly():
            self._values.add([variable])
        else:
            self._assigned[variable] = None

    def _gradient(
        self, gradients: Any, _tape: Any, target: Any, sources: Any = None, *_arguments: Any, **_options: Any
    ) -> None:
        if not self._paused:
            self._recorder.ended(sources, gradients)
            self.unapplied.asked(target, sources)
        if not tf.executing_eagerly():  # also within `fit`
            self._read(target, sources)
        elif not self._paused:
            self._note(target, gradients)
            self._asked += 1

    def _read(self, target: Any, sources: Any) -> None:
        symbolic = isinstance(target, tf.Tensor) and target.shape.rank == 0
        self._graph = loss_graph(target, sources) if symbolic else None

    def _note(self, target: Any, gradients: Any) -> None:
        if not isinstance(target, tf.Tensor) or target.shape.rank != 0 or not target.dtype.is_floating:
            return
        first = next((g for g in tf.nest.flatten(gradients) if g is not None), None)
        if first is not None:
            self._losses[first] = target

    def _applies(self, optimizer: Any, grads: list[Any], variables: list[Any] | None) -> None:
        self._stepping.pop(optimizer, None)
        if self._paused:
            return
        self.unapplied.end()
        loop = self._loop(optimizer, grads, variables)
        if loop is not None and tf.executing_eagerly():
            self._stepping[optimizer] = next((self._losses.pop(g) for g in grads if g in self._losses), None)
            loop.before()
            loop.judge(self._stepping[optimizer], grads)

    def _applied(self, _result: Any, optimizer: Any, grads: list[Any], _variables: list[Any] | None) -> None:
        if optimizer not in self._stepping:
            return
        loop = self._loops[optimizer]
        loop.after(self._stepping.pop(optimizer), grads)
        loop.tapes.stepped(self._opened - self._asked)
        self._opened = self._asked = 0
        if self._values is not None:
            self._values.clear()
        self._on_step(optimizer)

    def _loop(self, optimizer: Any, grads: list[Any], variables: list[Any] | None) -> TapeLoopWatcher | None:
        """Return the loop of an optimizer; a new one at its first step."""
        loop = self._loops.get(optimizer)
        if loop is None:
            held = variables if variables is not None else list(optimizer._trainable_variables)
            if len(held) != len(grads) or not all(isinstance(v, keras.Variable | tf.Variable) for v in held):
                return None
            eager = tf.executing_eagerly()
            loop = self._loops[optimizer] = TapeLoopWatcher(optimizer, held, eager, self._every)
            loop.graph, loop.values = self.graph(), self._values
            self._found += 1
            if self._found == 1:
                loop.seen = self._recorder.take(optimizer, held)
            else:
                self._recorder.release()
            self._began(loop, optimizer, held)
        return loop

    def _calls(self, *_arguments: Any, **_options: Any) -> None:
        if not self._paused and tf.executing_eagerly():  # else it is a nested one, while tracing
            traced = self._traced()
            for loop in traced:
                loop.before()
            if self._values is not None and self._values.wants:
                if traced:  # a function that computes gradients alone belongs to the eager step that follows
                    self._values.clear()
                self._values.add([*self._assigned, *(v for loop in traced for v in loop.changed())])

    def _called(self, result: Any, function: Any, *arguments: Any, **options: Any) -> None:
        if not self._paused and tf.executing_eagerly():
            self._recorder.called(arguments, options)
            self.unapplied.called(function)
            alone, stepped = len(self._loops) == 1, list[Any]()
            for optimizer, loop in self._loops.items():
                if not loop.eager and loop.called(result, alone):
                    stepped.append(optimizer)
            for optimizer in stepped:
                self._on_step(optimizer)

    def _traced(self) -> list[TapeLoopWatcher]:
        return [loop for loop in self._loops.values() if not loop.eager]


class TracedLoss(NamedTuple):
    """The operations that a traced loss depends on.

    Attributes:
        readers: by operation, those that read it.
        arguments: operations of the arguments of the traced function.
        trained: operations that depend on weights, and the weights.
        depending: the same of the arguments.
    """

    readers: dict[Any, list[Any]]
    arguments: list[Any]
    trained: set[Any]
    depending: set[Any]


def graph_of(loss: Any, sources: Any = None) -> TracedLoss:
    """Find the operations next to a loss, and which of them depend on weights and on arguments.

    Args:
        loss: a symbolic tensor () within a function that is being traced.
        sources: variables; if these are found, other weights, such as those of a target network, do not count,
            nor does the choice of the largest number.
    """
    readers: dict[Any, list[Any]] = {loss.op: []}
    waiting = deque([loss.op])
    while waiting:
        operation = waiting.popleft()
        for tensor in operation.inputs:
            if tensor.op not in readers and len(readers) < OPERATIONS:
                readers[tensor.op] = []
                waiting.append(tensor.op)
            if tensor.op in readers:
                readers[tensor.op].append(operation)
    captured = {id(one) for one in getattr(loss.graph, "internal_captures", ())}
    given = [operation for operation in readers if operation.type == "Placeholder"]
    weights = [operation for operation in given if operation.outputs[0].dtype.name == "resource"]
    arguments = [operation for operation in given if id(operation.outputs[0]) not in captured]
    held = [getattr(getattr(one, "_value", one), "handle", one) for one in tf.nest.flatten(sources)]
    chosen = [one for one in weights if any(outer_value(one.outputs[0]) is handle for handle in held)]
    trained = reached(chosen, readers, but="ArgMax") if chosen else reached(weights, readers)
    return TracedLoss(readers, arguments, trained, reached(arguments, readers))


def loss_graph(loss: Any, sources: Any = None) -> LossGraph:
    """Describe the operations that depend on weights, between these and a loss; see `graph_of`."""
    readers, _, trained, depending = graph_of(loss, sources)
    places = {operation: index for index, operation in enumerate(one for one in readers if one in trained)}

    def operand(tensor: Any) -> Operand:
        return Operand(places.get(tensor.op), _shape(tensor), is_argument=tensor.op in depending - trained)

    nodes = [
        Node(
            SYNONYMS.get(one.type, one.type),
            _shape(one.outputs[0]),
            tuple(map(operand, one.inputs)),
            rows=_rows(one) if one.type == "GatherV2" else None,
        )
        for one in places
    ]
    return LossGraph(tuple(nodes), traced=True)


def _rows(gather: Any) -> RowsRead | None:
    """Return the rows that `tf.gather` looks up, if they are the same in every step."""
    values, *others = gather.inputs
    indices, axis = map(_constant, others)
    there = None if values.shape.rank is None or axis != 0 else values.shape[0]
    if there is None or indices is None or not 0 < indices.size <= MOST_INDICES:
        return None
    return rows_read(indices.reshape(-1), there)


def _constant(tensor: Any) -> np.ndarray | None:
    """Return the value of a tensor that is written into a graph, or that it captured from outside; else None."""
    value = tf.get_static_value(tensor)
    if value is None:
        value = outer_value(tensor)
    return None if value is None or getattr(value, "dtype", None) == tf.resource else np.asarray(value)


def outer_value(tensor: Any) -> Any:
    """Return the eager tensor that a graph captured as this one; None if it is computed or an argument."""
    while tensor is not None and tf.is_symbolic_tensor(tensor):
        captured = {id(inner): outer for outer, inner in getattr(tensor.graph, "captures", ())}
        tensor = captured.get(id(tensor))
    return tensor


def reached(operations: Iterable[Any], readers: Mapping[Any, list[Any]], but: str = "") -> set[Any]:
    """Return operations and all that depend on them, but not through those of one type."""
    waiting, seen = list(operations), set[Any]()
    while waiting:
        operation = waiting.pop()
        if operation not in seen and operation.type != but:
            seen.add(operation)
            waiting += readers[operation]
    return seen


def _shape(tensor: Any) -> Shape | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
