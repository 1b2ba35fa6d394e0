"""Captures each batch that `fit` trains on, and passes it on unchanged.

Keras draws the batch inside its compiled step, and shows it to no callback. So the batch is drawn here and put
into a queue of length one, and the compiled step gets an iterator over that queue. Element types and shapes are
the same, so the step compiles as it would without the queue, and computes the same bits.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from diagnostics.collectors.shared.step_clock import StepClock
from diagnostics.errors import typed_message


class BatchTap:
    """Replaces `model.train_function` while a model is fitted.

    Args:
        model: compiled, its train function made.
        before: called with each batch before its step; with None where it could not be seen.
        after: called with what the step returned.
        clock: measures waiting for a batch, the step, and the rest.

    Attributes:
        why_not: why batches cannot be captured, as a verb phrase of `fit`; empty if they can.
    """

    def __init__(
        self, model: keras.Model, before: Callable[[Any], None], after: Callable[[Any], None], clock: StepClock
    ) -> None:
        self._model, self._clock = model, clock
        self._before = before
        self._after = after
        self._original = model.train_function
        if isinstance(self._original, _Step):  # of a fit that failed and did not restore it
            self._original = self._original.original
        self._step = _Step(self)
        # The iterator that batches were last drawn from. Held weakly: what ends with it, such as a generator's
        # `finally`, is to happen when it happens without us.
        self._source: Callable[[], Any] = _nothing
        self._spec: Any = None
        self._queue: Any = None
        self._feed: Any = None
        self.why_not = _why_not(model)

    def open(self) -> None:
        """Replace the train function."""
        self._model.train_function = self._step

    def close(self) -> None:
        """Restore the train function."""
        if self._model.train_function is self._step:
            self._model.train_function = self._original
        self._step.tap = None  # for references to it that remain
        self._source = _nothing
        self._queue = self._feed = None

    def run(self, iterator: Any) -> Any:
        """Take one step."""
        if not isinstance(iterator, tf.data.Iterator):  # of `train_on_batch`, or of several devices
            if not isinstance(iterator, tf.distribute.DistributedIterator):
                return self._original(iterator)
            self.why_not = "spreads them over several devices"
        batch = None
        if not self.why_not and self._prepare(iterator):
            self._clock.begin("loader")
            try:
                batch = iterator.get_next()
            except tf.errors.OutOfRangeError:
                # Keras finds out by a step that fails, after which its seeds for dropout have moved on.
                return self._original(iterator)
            self._clock.begin("diagnostics")
            iterator = self._hand_over(batch)
        self._before(batch)
        self._clock.begin("step")
        try:
            result = self._original(iterator)
        except BaseException:
            self._source = _nothing  # the queue may still hold the batch
            raise
        if batch is None:
            self._clock.drop()  # the step has drawn its batch itself
        else:
            self._clock.drew()
            self._clock.step()
        self._after(result)
        return result

    def _prepare(self, iterator: Any) -> bool:
        """Make a queue, and an iterator over it, that match the batches."""
        if iterator is self._source():
            return True
        try:
            spec = iterator.element_spec
            if self._feed is None or self._source is _nothing or spec != self._spec:
                self._spec = spec
                self._queue, self._feed = _queue_like(spec)
            self._source = weakref.ref(iterator)
        except Exception as fault:
            self.why_not = f"uses batches that cannot be passed on unchanged ({typed_message(fault)})"
        return not self.why_not

    def _hand_over(self, batch: Any) -> Any:
        try:
            self._queue.enqueue(tf.nest.flatten(batch))
        except Exception as fault:
            self.why_not = f"failed to pass them on ({typed_message(fault)})"
            return [batch]  # as `train_on_batch` would; the batch must not be lost
        return self._feed


def _nothing() -> None:
    """Replace a weak reference where there is no iterator."""


class _Step:
    """The wrapped train function; only passes calls through once the tap is closed."""

    def __init__(self, tap: BatchTap) -> None:
        self.tap: BatchTap | None = tap
        self.original = tap._original

    def __call__(self, iterator: Any) -> Any:
        return self.original(iterator) if self.tap is None else self.tap.run(iterator)


def _why_not(model: keras.Model) -> str:
    if model.steps_per_execution > 1:
        return f"takes {model.steps_per_execution} at once (steps_per_execution)"
    if type(model).make_train_function is not keras.Model.make_train_function:
        return f"does not draw them: {type(model).__name__} makes a train function of its own"
    return ""


def _queue_like(spec: Any) -> tuple[Any, Any]:
    """Make a queue for one element, and an iterator over what is put into it, with these very types.

    Raises:
        TypeError: an element that is no plain tensor.
        ValueError: the types cannot be had again.
    """
    flat = tf.nest.flatten(spec)
    for part in flat:
        if type(part) is not tf.TensorSpec:
            raise TypeError(f"an element is a {type(part).__name__}")
    queue = tf.queue.FIFOQueue(1, [part.dtype for part in flat])

    def take(_number: Any) -> Any:
        taken = queue.dequeue()
        parts = taken if isinstance(taken, list | tuple) else [taken]
        shaped = [tf.ensure_shape(part, wanted.shape) for part, wanted in zip(parts, flat, strict=True)]
        return tf.nest.pack_sequence_as(spec, shaped)

    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    feed = iter(tf.data.Dataset.range(1).repeat().map(take).with_options(options))
    if feed.element_spec != spec:
        raise ValueError(f"{feed.element_spec} instead of {spec}")
    return queue, feed
