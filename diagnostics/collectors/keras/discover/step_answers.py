"""Computes again what a `train_step` of the script's compared with its input, from the graph that was traced.

A model whose `train_step` calls its parts, such as an encoder and a decoder, may have no `call` that could be
asked. If it has one, that does not say what the loss compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.keras.dependence.subject import KeptBatch
from diagnostics.collectors.keras.internals import op_def_registry
from diagnostics.collectors.shared.dependence.examples import sameness
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import SamenessFacts
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import subscribe

from .tape_loops import graph_of, outer_value, reached

READS = ("ReadVariableOp", "ResourceGather", "RandomStandardNormal", "RandomUniform", "TruncatedNormal")
ACTIVATIONS = ("Sigmoid", "Softmax")  # which Keras' losses leave out, to read what is before
DIFFERENCES = ("Sub", "SquaredDifference")
LOGARITHMS = ("Log", "Log1p")  # of a cross-entropy, which multiplies them by the target
SUMS = ("Add", "AddV2", "AddN", "Identity")
MAX_TERMS = 4  # of a loss


class _Traced(NamedTuple):
    """Tensors of a graph: an argument, what the model makes of it, the target, and the terms of the loss.

    The last says whether the loss is a cross-entropy, which may read logits.
    """

    x: Any
    answer: Any
    like: Any
    terms: tuple[Any, ...]
    is_entropy: bool


class StepAnswers:
    """Listens until the first tape of a `fit` was asked for gradients, if its step is traced.

    Args:
        safely: runs the work, and takes its faults.
    """

    def __init__(self, safely: Callable[..., Any]) -> None:
        self._outputs: list[Any] = []
        self._traced: _Traced | None = None
        self._unsubscribe = subscribe(
            safely,
            (taps.layer_call.after, self._called),
            (taps.tape_enter.before, self._enter),
            (taps.tape_gradient.after, self._gradient),
        )

    def close(self) -> None:
        """Restore what was patched."""
        self._outputs.clear()
        self._unsubscribe()

    def facts(self, kept: KeptBatch) -> SamenessFacts | None:
        """Compare the answers to a batch with the targets; None if the graph cannot be computed again."""
        traced = self._traced
        if traced is None or len(kept.inputs) != 1:
            return None
        (given,) = kept.inputs
        size = traced.x.shape[0] or len(given)  # of the batches, if it is part of the graph
        given = given[np.arange(size) % len(given)]
        if not traced.x.shape.is_compatible_with(given.shape):
            return None
        with own_run(), own_warnings_ignored():
            values = _computed((traced.answer, traced.like, *traced.terms), traced.x, given)
        if values is None:
            return None
        answers, like, *terms = values
        if answers.shape[:1] != (size,) or like.shape != answers.shape or not np.isfinite(answers).all():
            return None
        if traced.is_entropy and like.min() >= 0 and like.max() <= 1 and (answers.min() < 0 or answers.max() > 1):
            answers = 1 / (1 + np.exp(-answers))  # the loss reads logits
        rows = min(size, len(kept.inputs[0]))
        is_input = like[0].size == given[0].size  # not a part of it, such as the steps to forecast
        found = sameness(answers[:rows], like[:rows], known=is_input)
        return found and replace(found, terms=tuple(map(float, terms)))

    # Events of the script. Each of these is called through `safely`.

    def _enter(self, _tape: Any) -> None:
        self._outputs.clear()

    def _called(self, returned: Any, *_arguments: Any, **_options: Any) -> None:
        if not tf.executing_eagerly():
            self._outputs += [part for part in tf.nest.flatten(returned) if tf.is_symbolic_tensor(part)]

    def _gradient(self, _gradients: Any, _tape: Any, target: Any, *_arguments: Any, **_options: Any) -> None:
        if tf.is_symbolic_tensor(target) and target.shape.rank == 0:
            self._traced = _read(target, self._outputs)
        self.close()


def _read(loss: Any, outputs: list[Any]) -> _Traced | None:
    """Find the last output of a layer that the loss compares with its only argument, or what is made of it."""
    graph = graph_of(loss)
    given = [one.outputs[0] for one in graph.arguments if one.outputs[0].dtype.is_floating]
    if len(given) != 1 or given[0].shape.rank is None or given[0].shape.rank < 2:
        return None
    for answer in reversed(outputs):
        starts = [answer.op, *(one.op for one in answer.op.inputs if answer.op.type in ACTIVATIONS)]
        if (
            answer.graph is not loss.graph
            or not answer.dtype.is_floating
            or not graph.trained.intersection(starts)
        ):
            continue
        after = reached([one for one in starts if one in graph.readers], graph.readers)
        of_entropy = ("Mul",) if any(one.type in LOGARITHMS for one in after) else ()
        beside = {
            tensor.ref(): tensor
            for operation in after
            if operation.type in (*DIFFERENCES, *of_entropy)
            for tensor in operation.inputs
            if tensor.op in graph.depending - graph.trained and tensor.dtype.is_floating
            if tensor.shape.rank == answer.shape.rank and tensor.shape.is_compatible_with(answer.shape)
            if any(other.op in after for other in operation.inputs)
        }
        first = [one for one in beside.values() if not _is_made_of(one, beside.values(), graph.readers)]
        if len(first) == 1 and answer.shape.rank and answer.shape.rank > 1:
            subtracted = {one.ref() for part in after if part.type in DIFFERENCES for one in part.inputs}
            terms = tuple(_terms(loss))[:MAX_TERMS]
            return _Traced(given[0], answer, first[0], terms, first[0].ref() not in subtracted)
    return None


def _is_made_of(tensor: Any, others: Iterable[Any], readers: Any) -> bool:
    """Return whether a tensor depends on another of these: ``1 - x`` is made of ``x``."""
    return any(tensor.op is not one.op and tensor.op in reached([one.op], readers) for one in others)


def _terms(loss: Any) -> Iterator[Any]:
    """Yield the scalars that a loss is the sum of, itself included if it is no sum."""
    if loss.op.type not in SUMS or any(one.shape.rank != 0 for one in loss.op.inputs):
        yield loss
        return
    for one in loss.op.inputs:
        yield from _terms(one)


def _computed(tensors: tuple[Any, ...], x: Any, value: Array) -> list[Array] | None:
    """Compute tensors of a traced graph for another value of an argument; no operation writes anything."""
    operations = _in_order(tensors, x)
    outer = {
        one.outputs[0].ref(): outer_value(one.outputs[0])
        for one in operations
        if one.type == "Placeholder" and one is not x.op
    }
    if any(one is None for one in outer.values()) or not all(map(_only_reads, operations)):
        return None

    def again(given: Any) -> list[Any]:
        here = tf.compat.v1.get_default_graph()
        copied = {x.ref(): given, **outer}
        for one in operations:
            if one.type != "Placeholder":
                attributes = {name: item for name, item in one.node_def.attr.items() if name[0] != "_"}
                inputs = [copied[tensor.ref()] for tensor in one.inputs]
                made = here.create_op(one.type, inputs, [part.dtype for part in one.outputs], attrs=attributes)
                copied |= {part.ref(): new for part, new in zip(one.outputs, made.outputs, strict=True)}
        return [tf.cast(copied[tensor.ref()], tf.float32) for tensor in tensors]

    return [np.asarray(part) for part in tf.function(again, autograph=False)(tf.constant(value, x.dtype))]


def _in_order(tensors: tuple[Any, ...], x: Any) -> list[Any]:
    """Return the operations that tensors are computed with, each after those that it reads."""
    order: dict[Any, None] = {}
    waiting = [(tensor.op, False) for tensor in tensors]
    while waiting:
        operation, is_ready = waiting.pop()
        if operation in order:
            continue
        if is_ready or operation is x.op:
            order[operation] = None
        else:
            waiting.append((operation, True))
            waiting += [(tensor.op, False) for tensor in operation.inputs]
    return list(order)


def _only_reads(operation: Any) -> bool:
    """Return whether an operation writes nothing and calls no function, in a plain graph."""
    if operation.type in ("Placeholder", *READS):
        return True
    known = op_def_registry.get(operation.type)  # None of a function
    return known is not None and not known.is_stateful and not any(part.type == "func" for part in known.attr)
