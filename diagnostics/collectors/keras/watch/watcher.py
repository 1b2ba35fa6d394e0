"""Watches one `fit` of a Keras model on TensorFlow, step by step."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.batch import fingerprint, inputs_of
from diagnostics.collectors.keras.model import computes_loss, has_parts_weights
from diagnostics.collectors.keras.optimizer import steps_made, why_rate_is_unknown
from diagnostics.collectors.keras.values import current
from diagnostics.collectors.keras.watch.replay import StepSnapshot, failed_batch, locate
from diagnostics.collectors.keras.weights import LIMIT, Weights, compiled, not_finite
from diagnostics.collectors.probe import Probes
from diagnostics.collectors.shared.history import History, is_sampled_step
from diagnostics.collectors.shared.input_sample import Collected, samples, take_arrays
from diagnostics.collectors.shared.step_clock import StepClock
from diagnostics.collectors.system.host_memory import resident_memory
from diagnostics.errors import typed_message
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputSample
from diagnostics.failed_batch import FailedBatch

from . import probes
from .fit_watcher import FitWatcher, WrappedStep, sample_fields
from .probes import WatchProbe
from .replay import batch_size
from .sampled_rows import SampledRows

INPUTS = 16  # batches of which a part is kept, to compare evaluations with


class KerasWatcher(FitWatcher):
    """Records the steps of a `fit`; see `FitWatcher`.

    Attributes:
        compares: whether its loss is known to compare the prediction for a row with the target of that row.
        sampled_rows: keeps some; None for none.
        on_batch: called with each batch; None for nothing.
        shows_batch: whether rows of the first batch are kept for the report.
    """

    def __init__(self, model: keras.Model, every: int, stop_after: int | None = None) -> None:
        hidden = {"gradients": "Keras computes them inside its compiled step and does not show them"}
        super().__init__(model, every, stop_after, current, hidden)
        self.memory_holder = "accelerator" if _on_gpu() else "process"
        self._failed: FailedBatch | None = None
        self._at_once = int(model.steps_per_execution)  # steps that Keras takes between two looks
        # A step of the user's own may want two sets of rows that are no pairs.
        self.compares = computes_loss(model) is False
        self._probes = Probes(probes, WatchProbe, self, self._safely)
        # An accelerator is not waited for but every so many steps; by then the weights are long others.
        self._deferred = _on_gpu() and every > 1
        self._weights: Weights | None = None
        inner = self._optimizer
        if inner is not None and (why := why_rate_is_unknown(inner)) is not None:
            self.uncovered["learning rate"] = why
        self._rate = _rate_of(None if "learning rate" in self.uncovered else inner, self._own_step)
        self._begun_at = steps_made(model.optimizer)
        self._pending: list[tuple[StepSnapshot, Any]] = []
        self._begun: list[StepSnapshot] = []  # the batches of the step that is under way
        self._read_of: list[StepSnapshot] = []  # the same, of the step that is being read
        self._current: StepSnapshot | None = None
        self._previous: StepSnapshot | None = None
        self._suspect: StepSnapshot | None = None  # the first step whose batch held NaN or inf
        self._unsound = False  # whether the weights were seen not to be finite
        self._inputs: dict[str, Collected] = {}
        self._looked = 0
        self.sampled_rows: SampledRows | None = None
        self.on_batch: Callable[[Any], None] | None = None
        self.shows_batch = True
        self.clock.asynchronous = _on_gpu()
        self._tap = BatchTap(
            model,
            partial(self._safely, "steps", self._before),
            partial(self._safely, "steps", self._after),
            self.clock,
        )
        self._tap.open()

    def judge(self, call: Callable[[], object]) -> None:
        """See `FitWatcher.judge`; from then on it waits for each step."""
        super().judge(call)
        self._deferred = False

    def _restore(self) -> None:
        self._tap.close()
        self._probes.tell(WatchProbe.on_close)

    def _release(self) -> None:
        if self.origin is None:
            self._safely("origin", self._look_behind)
        self._previous = self._current = self._suspect = None

    def batch(self) -> FailedBatch | None:
        """See `FitWatcher.batch`."""
        return self._failed

    def epoch_begins(self) -> None:
        """See `FitWatcher.epoch_begins`."""
        super().epoch_begins()
        self._probes.tell(WatchProbe.on_epoch)

    def facts(self) -> list[Any]:
        """See `FitWatcher.facts`."""
        return [*super().facts(), *self._probes.facts("end")]

    def _recorded(self) -> tuple[dict[str, Array], dict[str, Array]]:
        rows, samples = super()._recorded()
        if self._at_once > 1:
            samples["update_ratios"][:] = np.nan
        return rows, samples

    def inputs(self) -> dict[str, InputSample]:
        """Return a part of the inputs of some batches, by name."""
        return samples(self._inputs)

    # Around each step.

    def _before(self, batch: Any) -> None:
        if self._is_another_fit():
            return
        if self.first_batches is not None and not self.first_batches(batch, f"fit {self._tap.why_not}"):
            self.first_batches = None
        if batch is not None and self._looked < INPUTS and self._sampled(self.steps):
            self._looked += 1
            self._safely("inputs", lambda: take_arrays(self._inputs, inputs_of(batch)))
        if batch is not None:
            self._probes.tell(WatchProbe.on_batch, batch)
            if self.compares and self.sampled_rows is not None:
                self._safely("drawn rows", self.sampled_rows.take, batch)
            if self.compares and self.on_batch is not None:
                self._safely("training batches", self.on_batch, batch)
        if self._weights is None and has_parts_weights(self._model):
            self._probes.tell(WatchProbe.on_weights, self._build())
        weights = self._weights
        if self.over_time is not None and weights is not None and not self._begun:
            self.over_time.before_step(self.steps)
        self._keep_values()
        keeps = self.origin is None and not self._deferred
        parts = [] if batch is None else [np.asarray(part) for part in keras.tree.flatten(batch)]  # not copied
        self._take_rows(parts)
        wanted = keeps or (not self._begun and self._sampled(self.steps))
        self._current = StepSnapshot(
            step=self.steps,
            batch=batch if keeps else None,
            values=weights.read() if wanted and weights is not None and weights.small else None,
            size=0 if batch is None else batch_size(batch),
            fingerprint=fingerprint(parts) if parts else 0,
            rate=self._rate(),
        )
        if keeps and self._suspect is None and not _are_finite(parts):
            self._suspect = self._current

    def _after(self, logs: Any) -> None:
        current = self._current
        if current is None:
            return
        if self._weights is None:  # many models make them when they are first called
            self._build()
        self.forwards += 1
        self._pending.append((current, self._loss.ask(logs)))
        self._begun.append(current)
        if len(self._begun) >= self._passes:
            self._step_is_over()
        if not self._deferred or len(self._pending) >= self._every or self._unsound:
            self.read()
        if self._unsound and self.origin is None:
            self._safely("origin", self._look_behind)
        if (values := self._values) is not None and values.wants and self._is_broken(logs):
            self.read()
            if self.origin is None:
                self._safely("origin", self._look_behind)
            values.judge()
        self._stop_if_enough()

    def _step_is_over(self) -> None:
        first, self._begun = self._begun[0], []
        if first.values is not None and self._sampled(first.step) and self._weights is not None:
            ratios, norms = self._weights.measure(first.values)
            self._samples.append((first.step, ratios, norms, allocated_memory()))
            self._unsound = bool(not np.isfinite(norms).all() or np.isnan(ratios).any())
        if self._deferred or self.origin is not None:
            first.values = None
        self.steps += self._at_once
        if self._at_once > 1:  # at the end of an epoch Keras takes fewer
            self.steps = (steps_made(self._model.optimizer) - self._begun_at) or self.steps
            self.forwards = self.steps

    def _sampled(self, step: int) -> bool:
        return is_sampled_step(step // self._at_once, self._every)

    def _build(self) -> Weights:
        model = self._model
        self._weights = weights = Weights(model.trainable_variables, model.non_trainable_variables, model.name)
        self._layers = weights.layers
        self._samples = History(sample_fields(len(weights.layers)))
        if not weights.small:
            why = f"the weights take more than {LIMIT // 2**20} MiB and were not copied"
            self.uncovered["weights"] = self.uncovered["updates"] = why
        elif self._deferred:
            self.uncovered["weights"] = (
                "the weights are not kept on an accelerator; KerasCallback(every=1) keeps them, but waits for "
                "each step"
            )
        if self._at_once > 1:
            self.uncovered["updates"] = f"Keras takes {self._at_once} steps at once (steps_per_execution)"
        return weights

    # Reading.

    def _read(self) -> None:
        pending, self._pending = self._pending, []
        for kept, raw in pending:
            kept.loss = self._loss.value(raw)
            kept.rate = None if kept.rate is None else float(kept.rate)
            if self.origin is None and kept.loss is not None and not math.isfinite(kept.loss):
                self._safely("origin", self._locate, kept)
            self._previous = kept if self.origin is None else None
            self._read_of.append(kept)
            if len(self._read_of) >= self._passes:
                group, self._read_of = self._read_of, []
                self._keep(group)
        if self._tap.why_not:
            self.uncovered["forward passes"] = self._no_batches()
        self._was_read()

    def _no_batches(self) -> str:
        return f"Keras shows callbacks no batches, and this fit {self._tap.why_not}"

    def _keep(self, group: list[StepSnapshot]) -> None:
        """Write a step into the history; its loss is the mean over its batches."""
        losses = [kept.loss for kept in group if kept.loss is not None]
        last = group[-1]
        self._rows.append(
            (
                last.step, sum(losses) / len(losses) if losses else math.nan, bool(losses),
                [math.nan if last.rate is None else last.rate], last.fingerprint, last.size,
            )
        )  # fmt: skip

    def _locate(self, kept: StepSnapshot) -> None:
        assert self._weights is not None
        earlier = [self._suspect] if self._suspect is not None and self._suspect.step < kept.step else []
        if self._previous is not None and self._previous not in earlier:
            earlier.append(self._previous)
        self.origin = locate(
            self._model, self._weights, kept, earlier, noticed=max(self.steps - 1, 0),
            no_batch=self._no_batches(),
            no_values=self.uncovered.get("weights", "the model made its weights in that very step"),
        )  # fmt: skip
        self._failed = failed_batch(self.origin, [*earlier, kept])
        self._previous = self._suspect = None  # the first is the one that matters: no more needs to be held

    def _look_behind(self) -> None:
        """Look at the weights that no later step has used, where every loss was seen to be finite."""
        self._unsound = False
        if self._weights is None or self._previous is None or not self._weights.small:
            return
        values = self._weights.read()
        if not_finite(self._weights.names, values):
            self._locate(StepSnapshot(self.steps, None, values))


def _rate_of(optimizer: Any, own_step: bool) -> Callable[[], Any]:
    """Return what tells the learning rate of the step to come, of a schedule, too: a tensor (), or None."""
    if optimizer is None:
        return lambda: None
    plain = isinstance(optimizer._learning_rate, keras.Variable)
    rate = compiled(lambda: tf.cast(optimizer.learning_rate, tf.float64))

    def now() -> Any:
        if own_step and not optimizer.built:  # it steps with others, and this one is Keras' default
            return None
        return current(optimizer._learning_rate) if plain else rate()

    return now


def _are_finite(parts: list[Array]) -> bool:
    """Whether no part of a batch holds NaN or inf, but for a sum that passes the largest number of its dtype."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all(bool(np.isfinite(values.sum())) for values in parts if tf.as_dtype(values.dtype).is_floating)


def _on_gpu() -> bool:
    return bool(tf.config.list_logical_devices("GPU"))


def allocated_memory() -> float:
    """Return the bytes in use on the first GPU, or by this process where there is none; NaN if not known."""
    if _on_gpu():
        return float(tf.config.experimental.get_memory_info("GPU:0")["current"])
    return resident_memory()


class BatchTap:
    """Replaces `model.train_function` while a model is fitted, and captures each batch.

    Keras draws the batch inside its compiled step, and shows it to no callback. So the batch is drawn here and put
    into a queue of length one, and the compiled step gets an iterator over that queue. Element types and shapes
    are the same, so the step compiles as it would without the queue, and computes the same bits.

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
        self._step = WrappedStep(model.train_function, self.run)
        self._original = self._step.original
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
        self._step.take = None  # for references to it that remain
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
