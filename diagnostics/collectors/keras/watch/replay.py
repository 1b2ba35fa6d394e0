"""Replays a step of a Keras model, eagerly and on copied weights, and locates where a NaN or inf begins."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.batch import named, unpack
from diagnostics.collectors.keras.harmless import NOTICED, of_call, of_loss
from diagnostics.collectors.keras.model import has_own_train_step
from diagnostics.collectors.keras.state import global_states_kept
from diagnostics.collectors.keras.values import current
from diagnostics.collectors.keras.weights import Weights, not_finite
from diagnostics.errors import InvalidInput
from diagnostics.facts.nonfinite import FrameFacts, OriginFacts, OriginKind, ValueRange
from diagnostics.failed_batch import FailedBatch

FRAMES = 12  # layer calls kept up to the origin, as for PyTorch


@dataclass(frozen=True)
class Replayed:
    """What a step showed when it was run again; see `OriginFacts` for the fields.

    Attributes:
        kind: None if all was finite.
        gradients: names of the trainable variables whose gradient was not finite.
        loss: as it was computed; None if it was not.
        reason: why there is no kind, in words.
    """

    kind: OriginKind | None
    module: str | None = None
    module_kind: str | None = None
    frames: tuple[FrameFacts, ...] = ()
    inputs: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    gradients: tuple[str, ...] = ()
    loss: float | None = None
    reason: str = ""


@dataclass
class _Call:
    path: str
    layer: Any
    depth: int
    given: list[Any]
    made: list[Any]

    @property
    def inputs(self) -> ValueRange | None:
        return value_range(self.given)

    @property
    def outputs(self) -> ValueRange | None:
        return value_range(self.made)

    def frame(self) -> FrameFacts:
        own = [current(v) for v in _own_variables(self.layer)]
        dtype = self.made[0].dtype.name if self.made else None
        return FrameFacts(self.path, type(self.layer).__name__, dtype, value_range(own), self.inputs, self.outputs)

    @property
    def makes_it(self) -> bool:
        """Whether it made NaN or inf from finite input. A mask's -inf is none, unless weights made it."""
        inputs, outputs = self.inputs, self.outputs
        if outputs is None or (inputs is not None and inputs.broken):
            return False
        if outputs.broken:
            return True
        overflows = outputs.minus_inf and not _children(self.layer) and self.layer.trainable_variables
        return bool(overflows) and (inputs is None or inputs.finite)


def replay(model: keras.Model, weights: Weights, values: list[Any], batch: Any, gradient: bool) -> Replayed:
    """Run one step again.

    Args:
        model: only read.
        weights: its variables.
        values: theirs, from before the step.
        batch: as `train_step` gets it.
        gradient: whether to run backward as well, if loss and outputs are finite.
    """
    x, y, sample_weight = unpack(batch)
    size = batch_size(batch)
    pairs = list(zip(weights.variables, values, strict=True))
    own_step = has_own_train_step(model)
    trainable = values[: weights.trainable]
    inputs = [part for part in keras.tree.flatten(x) if _is_float(part)]
    loss, failure = None, ""
    with global_states_kept(), keras.StatelessScope(state_mapping=pairs, collect_losses=True) as scope:
        # The scope may hold copies of what it was given; those are what the layers see.
        seen = [scope.get_current_value(variable) for variable in weights.variables[: weights.trainable]]
        with tf.GradientTape() as tape, _calls(model) as calls:
            tape.watch([*seen, *inputs])
            takes_training = getattr(model, "_call_has_training_arg", True)
            prediction = model(x, training=True) if takes_training else model(x)
            outputs = [part for part in keras.tree.flatten(prediction) if _is_float(part)]
            whole = value_range(outputs)
            if whole is not None and whole.broken:
                return _in_forward(calls, x, size)
            if own_step:
                name = f"{type(model).__name__}.train_step"
                return Replayed(None, reason=f"the forward pass is finite, and {name} does the rest")
            try:
                loss = model._compute_loss(x=x, y=y, y_pred=prediction, sample_weight=sample_weight, training=True)
            except tf.errors.InvalidArgumentError as error:
                failure = str(error).splitlines()[0]  # a label out of range: XLA computes NaN and goes on
        if loss is None:
            return Replayed("loss", reason=failure)
        if not np.isfinite(float(loss)):
            return Replayed("loss", loss=float(loss))
        if not gradient:
            return Replayed(None, loss=float(loss), reason="the step gives finite values when run eagerly")
        return _in_backward(tape, loss, calls, weights.names, seen or trainable)


def batch_size(batch: Any) -> int:
    """Return how many examples a batch holds; 0 if that is not known."""
    parts = [part for part in keras.tree.flatten(batch) if hasattr(part, "shape")]
    return int(parts[0].shape[0]) if parts and len(parts[0].shape) else 0


def value_range(values: list[Any]) -> ValueRange | None:
    """Describe the numbers of tensors of floats; None if there are none."""
    arrays = [np.asarray(tf.cast(value, tf.float32)) for value in values if _is_float(value)]
    numbers = np.concatenate([array.reshape(-1) for array in arrays]) if arrays else np.zeros(0)
    if not numbers.size:
        return None
    finite = np.abs(numbers[np.isfinite(numbers)])
    return ValueRange(
        float(finite.min()) if finite.size else None,
        float(finite.max()) if finite.size else None,
        int(np.isnan(numbers).sum()),
        int(np.isposinf(numbers).sum()),
        int(np.isneginf(numbers).sum()),
    )


@contextmanager
def _calls(model: keras.Model) -> Iterator[list[_Call]]:
    """Collect every layer's calls in the order in which they end: a child before its parent."""
    ended: list[_Call] = []
    depth = 0
    covered: list[Any] = []

    def cover(path: str, layer: Any) -> None:
        original = layer.call

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                output = original(*args, **kwargs)
            finally:
                depth -= 1
            given = [part for part in keras.tree.flatten((args, kwargs)) if _is_float(part)]
            made = [part for part in keras.tree.flatten(output) if _is_float(part)]
            ended.append(_Call(path, layer, depth, given, made))
            return output

        vars(layer)["call"] = call  # past Keras' tracking of attributes
        covered.append(layer)

    try:
        for path, layer in _layers(model):
            if "call" not in vars(layer):  # one of the user's own stays
                cover(path, layer)
        yield ended
    finally:
        for layer in covered:
            del vars(layer)["call"]


def _layers(model: keras.Model) -> Iterator[tuple[str, Any]]:
    """Yield each layer once with its path, ``block/dense``; the model itself with an empty one."""
    seen: set[int] = set()

    def walk(path: str, layer: Any) -> Iterator[tuple[str, Any]]:
        if id(layer) in seen or isinstance(layer, keras.layers.InputLayer):
            return
        seen.add(id(layer))
        yield path, layer
        for child in _children(layer):
            yield from walk(f"{path}/{child.name}" if path else child.name, child)

    yield from walk("", model)


def _children(layer: Any) -> list[Any]:
    return list(layer._flatten_layers(include_self=False, recursive=False))


def _own_variables(layer: Any) -> list[Any]:
    return list(layer._trainable_variables)


def _is_float(value: Any) -> bool:
    return tf.is_tensor(value) and hasattr(value, "dtype") and tf.as_dtype(value.dtype).is_floating


def _broken_rows(values: list[Any], size: int) -> tuple[int, ...]:
    rows: set[int] = set()
    for value in values:
        array = np.asarray(tf.cast(value, tf.float32))
        if size and array.ndim and len(array) == size:
            rows.update(np.flatnonzero(~np.isfinite(array).reshape(size, -1).all(1)).tolist())
    return tuple(sorted(rows))


def _frames(calls: list[_Call], place: int) -> tuple[FrameFacts, ...]:
    return tuple(call.frame() for call in calls[max(0, place + 1 - FRAMES) : place + 1])


def _in_forward(calls: list[_Call], x: Any, size: int) -> Replayed:
    for place, call in enumerate(calls):
        if call.makes_it:
            rows = _broken_rows(call.made, size)
            return Replayed("forward", call.path, type(call.layer).__name__, _frames(calls, place), rows=rows)
    broken = {
        name: value
        for name, value in named(x).items()
        if _is_float(value) and (values := value_range([value])) is not None and values.broken
    }
    rows = _broken_rows(list(broken.values()), size)
    return Replayed("input", frames=_frames(calls[:1], 0), inputs=tuple(broken), rows=rows)


def _in_backward(tape: Any, loss: Any, calls: list[_Call], names: tuple[str, ...], values: list[Any]) -> Replayed:
    """Differentiate, and find the layer that makes NaN or inf from a finite gradient."""
    tensors = [tensor for call in calls for tensor in (*call.made, *call.given)]
    gradients = [_finite(gradient) for gradient in tape.gradient(loss, [*values, *tensors])]
    broken = tuple(name for name, finite in zip(names, gradients, strict=False) if not finite)
    after = iter(gradients[len(values) :])
    made_it = []
    for place, call in enumerate(calls):
        outputs, inputs = [next(after) for _ in call.made], [next(after) for _ in call.given]
        own = {variable.path for variable in _own_variables(call.layer)}
        if all(outputs) and (not all(inputs) or own & set(broken)):
            made_it.append((call.depth, place))
    if not broken and not made_it:
        return Replayed(None, loss=float(loss))
    if not made_it:
        return Replayed("gradient", gradients=broken, loss=float(loss))
    _, place = max(made_it)  # the innermost; a parent sees the same from outside
    call = calls[place]
    return Replayed(
        "gradient", call.path, type(call.layer).__name__, _frames(calls, place),
        gradients=broken, loss=float(loss),
    )  # fmt: skip


def _finite(gradient: Any) -> bool:
    if gradient is None:
        return True
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    return bool(tf.reduce_all(tf.math.is_finite(values)))


@dataclass
class StepSnapshot:
    """What a step started from.

    Attributes:
        step: of the optimizer.
        batch: as `train_step` gets it; None if it was not seen.
        values: of all variables; None if they were not kept.
        size: examples in the batch; 0 if not known.
        fingerprint: of the batch; 0 if not known.
        rate: the learning rate; a tensor () until it is read, None if not known.
        loss: what came out; None if not known.
    """

    step: int
    batch: Any
    values: list[Any] | None
    size: int = 0
    fingerprint: int = 0
    rate: Any = None
    loss: float | None = None


def locate(
    model: keras.Model,
    weights: Weights,
    last: StepSnapshot,
    earlier: list[StepSnapshot],
    *,
    noticed: int,
    no_batch: str,
    no_values: str,
) -> OriginFacts:
    """Find where the NaN or inf began: in the last step, or in the update of one before it.

    Args:
        model: only read.
        weights: its variables.
        last: the step whose loss was not finite, or that began on weights that were not.
        earlier: steps before it that may have begun it, in order; the last of them came directly before.
        noticed: the last step that had run.
        no_batch: why batches were not seen, in words; empty if they were.
        no_values: why weights were not kept, in words.
    """

    def facts(kept: StepSnapshot, kind: Any, replayed: bool, **more: Any) -> OriginFacts:
        known = {
            "step": kept.step,
            "num_parameters": weights.trainable,
            "loss": kept.loss,
            "batch_size": kept.size or None,
            "batch_fingerprint": kept.fingerprint or None,
            "learning_rate": kept.rate,
        }
        return OriginFacts(kind=kind, replayed=replayed, noticed=noticed, **(known | more))

    def told(kept: StepSnapshot, found: Replayed) -> OriginFacts:
        return facts(
            kept, found.kind, True, module=found.module, module_kind=found.module_kind, frames=found.frames,
            inputs=found.inputs, rows=found.rows, parameters=found.gradients,
            reason=found.reason,
        )  # fmt: skip

    if last.values is None:
        return facts(last, None, False, reason=no_values)
    if (why := of_call(model).objection or of_loss(model).objection) is not None:
        no_batch = f"the step was not replayed, because {NOTICED.format(why)}"
    broken = not_finite(weights.names, last.values)
    if not broken:
        if last.batch is None or why:
            return facts(last, None, False, reason=no_batch)
        return told(last, replay(model, weights, last.values, last.batch, gradient=False))
    if not earlier:
        why = "this happened before the first watched step"
        return facts(last, "weights", False, parameters=broken, reason=why)
    sound = [kept for kept in earlier if kept.values and not not_finite(weights.names, kept.values)]
    for kept in sound:
        if kept.batch is None or why:
            continue
        assert kept.values is not None
        found = replay(model, weights, kept.values, kept.batch, gradient=True)
        if found.kind is not None:
            return told(kept, found)
        if kept is earlier[-1] and found.loss is not None:
            return facts(kept, "optimizer step", True, parameters=broken)
    before = earlier[-1]
    reason = "the weights were not checked after each step"
    if before.values is None or before.batch is None or why:
        reason = no_values if before.values is None else no_batch
    return facts(before, "weights", False, step=last.step - 1, parameters=broken, reason=reason)


class KerasBatch(FailedBatch):
    """A batch as `train_step` gets it: `args` are inputs, target and sample weights, or None."""

    ending = ".npz"

    def save(self, path: str | Path) -> Path:
        """Write the batch with `numpy.savez`: ``x.NAME``, ``y.NAME`` and ``sample_weight.NAME``, and ``rows``.

        Raises:
            InvalidInput: the batch was not kept.
        """
        if self.why_not:
            raise InvalidInput(f"The batch of step {self.step} cannot be saved: {self.why_not}.")
        parts = zip(("x", "y", "sample_weight"), self.args, strict=True)
        arrays: dict[str, Any] = {"step": self.step, "rows": np.array(self.rows, dtype=np.int64)}
        arrays |= {
            f"{part}.{name}": np.asarray(value)
            for part, values in parts
            if values is not None
            for name, value in named(values).items()
        }
        with open(path, "wb") as file:  # given a path, NumPy would add an ending to it
            np.savez(file, **arrays)
        return Path(path)


def failed_batch(origin: OriginFacts, steps: list[StepSnapshot]) -> KerasBatch | None:
    """Return the batch of the step that an origin names, from among these; None where no batch is to blame."""
    kept = next((kept for kept in steps if kept.step == origin.step), None)
    if kept is None or origin.kind == "weights":
        return None
    there = kept.batch is not None
    return KerasBatch(
        kept.step, kept.fingerprint or None, kept.size, origin.rows, unpack(kept.batch) if there else (),
        why_not="" if there else "Keras did not show it",
    )  # fmt: skip
