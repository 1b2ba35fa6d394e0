"""The losses that a Keras user may mean, for `loss_match` to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.shared.arrays import PROBABILITY_SUM
from diagnostics.collectors.shared.loss_match import (
    READINGS,
    Candidate,
    Recognised,
    elementwise,
    entropy_floor,
    recognise,
)
from diagnostics.facts.array import Array
from diagnostics.facts.loss_call import Argument, LossCall
from diagnostics.facts.loss_contracts import KERAS, LossContract, LossKind, Reads, function_of
from diagnostics.facts.pipeline import OutputFacts

from .batch import as_array, is_one_hot

# A penalty on the weights that is larger than this share of the best constant prediction's loss: then that
# is no floor, for the penalty alone may keep the loss above it. Our choice.
LARGE_PENALTY = 0.1


def function_name(loss: Any) -> str | None:
    """Return the name of the function behind a loss: that of a string, a function or a `keras.losses.Loss`."""
    if isinstance(loss, str):
        return loss
    if isinstance(loss, keras.losses.Loss):
        return str(getattr(getattr(loss, "fn", None), "__name__", loss.name))
    return getattr(loss, "__name__", None)


def _contract(loss: Any) -> LossContract:
    """Return what a loss of Keras expects, by its name; an empty contract for others."""
    return KERAS.get(function_of(function_name(loss) or ""), LossContract())


def contract_as_set(loss: Any) -> LossContract:
    """Return what a loss of Keras expects, with its settings; an empty contract for one of the user's own."""
    if not isinstance(loss, str) and not getattr(loss, "__module__", "").startswith("keras."):
        return LossContract()
    contract = _contract(loss)
    if not contract.kind.endswith("cross_entropy"):
        return contract
    return replace(contract, reads="logits" if getattr(loss, "from_logits", False) else "probabilities")


def kind_of_loss(loss: Any) -> LossKind:
    """Return what a loss of Keras computes, by its name."""
    return _contract(loss).kind


def as_written(loss: Any) -> str | None:
    """Name a loss as its user wrote it: `loss="mse"`, `SparseCategoricalCrossentropy(from_logits=True)`."""
    if isinstance(loss, str):
        return f'loss="{loss}"'
    if isinstance(loss, keras.losses.Loss):
        logits = getattr(loss, "from_logits", None)
        return type(loss).__name__ + ("" if logits is None else f"(from_logits={logits})")
    return getattr(loss, "__name__", None)


def expects_indices(loss: Any) -> bool:
    """Whether the loss is known to look up its target among the outputs."""
    return _contract(loss).targets == "classes"


def classifies(loss: Any) -> bool:
    """Whether the loss is a cross entropy of Keras, by its name."""
    return (function_name(loss) or "").endswith("crossentropy")


def counts_right_classes(model: keras.Model) -> bool | None:
    """Whether one of the metrics that a model was compiled with is an accuracy; None if that is not seen."""
    given = getattr(getattr(model, "_compile_metrics", None), "_user_metrics", None)
    if given is None:
        return None
    names = [function_name(one) or getattr(one, "name", "") or "" for one in keras.tree.flatten(given)]
    return any(name == "acc" or name.endswith("accuracy") for name in names)


def weighs_classes(loss: Any, sample_weights: bool, class_weights: bool | None) -> bool | None:
    """Say whether rare classes may count for more; what a loss of the user's own does is not known.

    Args:
        loss: what the model was compiled with.
        sample_weights: whether the batch has any.
        class_weights: whether `fit` is given any; None if not known.
    """
    if sample_weights or class_weights:
        return True
    known = isinstance(loss, str) or getattr(loss, "__module__", "").startswith("keras.")
    return class_weights if known else None


def by_class(class_weight: Any) -> tuple[float, ...] | None:
    """Return the weights given to `fit`, from class 0 on; None where some class up to the last has none."""
    if not isinstance(class_weight, dict) or set(class_weight) != set(range(len(class_weight))):
        return None
    return tuple(float(class_weight[label]) for label in range(len(class_weight)))


def output_facts(values: Array | None, loss: Any, last_activation: str | None, target: Any = None) -> OutputFacts:
    """Return the facts of a prediction.

    Args:
        values: (n, ...) in float32; None for several outputs.
        loss: what the model was compiled with.
        last_activation: of the model, None if not known.
        target: of these examples, an array or tensor; None if there is none, or several.
    """
    if values is None:
        return OutputFacts((), None)
    finite = np.isfinite(values)
    width = int(values.shape[-1]) if values.ndim > 1 else 1
    sums_to_one = None
    if width > 1:
        sums_to_one = bool((values >= 0).all() and (np.abs(values.sum(-1) - 1) <= PROBABILITY_SUM).all())
    return OutputFacts(
        shape=tuple(values.shape),
        num_classes=_classes(values, loss, None if target is None else as_array(target)),
        indexed_labels=expects_indices(loss),
        non_finite_rows=tuple(np.flatnonzero(~finite.reshape(len(values), -1).all(1)).tolist()),
        lowest=float(values[finite].min()) if finite.any() else None,
        highest=float(values[finite].max()) if finite.any() else None,
        sums_to_one=sums_to_one,
        last_activation=last_activation,
    )


def _classes(values: Array, loss: Any, target: Array | None) -> int | None:
    """Return the number of classes that a loss tells apart; None where its targets name no classes.

    Binary cross entropy on one output tells two apart if the targets are 0 and 1, one for each example.
    """
    kind, width = kind_of_loss(loss), int(values.shape[-1]) if values.ndim > 1 else 1
    if expects_indices(loss):
        return width if values.ndim > 1 else None
    if target is None or not target.size:
        return None
    if kind == "cross_entropy" and target.size == values.size:
        return width if width == 1 or is_one_hot(target) else None
    alone = width == 1 and values.size == len(values) == target.size
    if kind == "binary_cross_entropy" and alone and bool(((target == 0) | (target == 1)).all()):
        return 2
    return None


def loss_call(value: float, prediction: Array, target: Array, loss: Any, weighted: bool) -> LossCall | None:
    """Describe the call of a loss of Keras; None for one of the user's, or of class indices.

    Args:
        value: the loss of the batch.
        prediction: (n, ...), in float32.
        target: (n, ...).
        loss: what the model was compiled with.
        weighted: whether there are sample or class weights.
    """
    name = function_name(loss)
    known = isinstance(loss, str) or type(loss).__module__.startswith("keras.")
    if name is None or not known or expects_indices(loss) or not target.size or target.dtype.kind not in "fiub":
        return None
    arguments = {"y_true": Argument.of(target), "y_pred": Argument.of(prediction)}
    return LossCall(function_of(name), arguments, value=value, whole=True, weighted=weighted)


def recognise_loss(
    value: float, prediction: Array, target: Array, loss: Any, last_activation: str | None = None
) -> Recognised:
    """Find the loss that gives `value` for this prediction and target.

    Args:
        value: the loss that the model computed.
        prediction: (n, ...), in float32.
        target: (n, ...).
        loss: what the model was compiled with; it decides where the value does not (a NaN, sample weights).
        last_activation: of the model, None if not known. Behind a softmax or a sigmoid, Keras takes the numbers
            before it, whatever the settings of the loss.
    """
    if expects_indices(loss) and target.dtype.kind == "f" and np.isfinite(target).all():
        target = np.trunc(target)  # as the loss does
    candidates = list(_candidates(prediction, target, getattr(loss, "label_smoothing", 0.0) or 0.0))
    found = recognise(value, candidates)
    if found.kind != "other":
        return found
    kind = kind_of_loss(loss)
    logits = getattr(loss, "from_logits", False)
    reads: Reads | None = None
    if classifies(loss) and last_activation not in (None, "softmax", "sigmoid"):
        reads = "logits" if logits else "probabilities"
    same = [candidate.meaning for candidate in candidates if candidate.meaning.kind == kind]
    if same:
        return replace(same[0], reads=reads, broadcast=False)
    if kind != "other" and classifies(loss) and prediction.size == target.size:
        return Recognised(kind, reads=reads)  # targets that this loss is not made for
    return Recognised()


def with_penalty(found: Recognised, penalty: float) -> Recognised:
    """Add what the model adds to its loss by itself to the floor of the loss."""
    if found.floor is None or penalty <= 0:
        return found
    if penalty > LARGE_PENALTY * found.floor:
        return Recognised()
    return replace(found, floor=found.floor + penalty)


def _candidates(prediction: Array, target: Array, smoothing: float) -> Iterator[Candidate]:
    indices = target[..., 0] if target.ndim == prediction.ndim and target.shape[-1] == 1 else target
    classes = prediction.shape[-1] if prediction.ndim > 1 else 1
    whole = (
        np.all(indices == np.floor(indices)) and indices.size and indices.min() >= 0 and indices.max() < classes
    )
    if classes > 1 and indices.shape == prediction.shape[:-1] and whole:
        floor = entropy_floor(indices.astype(int), classes)
        yield from _both(keras.losses.sparse_categorical_crossentropy, indices, prediction, floor, classes)
        return
    if classes > 1 and target.shape == prediction.shape and is_one_hot(target):
        floor = entropy_floor(target.argmax(-1), classes, smoothing)
        yield from _both(keras.losses.categorical_crossentropy, target, prediction, floor, classes)
    if target.size == prediction.size:
        target_shaped = target.reshape(prediction.shape)
        yield from _elementwise(prediction, target_shaped, broadcast=False)
    if target.shape != prediction.shape:
        yield from _spread(prediction, target, max(target.size, prediction.size) + 1)
    if prediction.ndim == target.ndim + 1 > 2 and prediction.shape[-1] == 1:  # an axis that Keras' losses drop
        yield from _spread(prediction[..., 0], target, target.size + 1)


def _spread(prediction: Array, target: Array, least: int) -> Iterator[Candidate]:
    """Compare them after broadcasting, where that takes at least so many numbers."""
    try:
        spread = np.broadcast_arrays(target, prediction)
    except ValueError:
        return
    if spread[0].size >= least:
        yield from _elementwise(spread[1], spread[0], broadcast=True)


def _both(
    function: Callable[..., Any], target: Array, prediction: Array, floor: float, classes: int
) -> Iterator[Candidate]:
    def compute(reads: Reads) -> float:
        return _mean(function(target, prediction, from_logits=reads == "logits"))

    for reads in READINGS:
        yield Candidate(partial(compute, reads), Recognised("cross_entropy", floor, classes, reads=reads))


def _mean(losses: Any) -> float:
    return float(np.mean(keras.ops.convert_to_numpy(losses)))


def _elementwise(prediction: Array, target: Array, broadcast: bool) -> Iterator[Candidate]:
    target = target.astype(np.float32)

    def compute(kind: LossKind, reads: Reads | None) -> float:
        if kind == "mean_squared_error":
            return float(np.mean((prediction - target) ** 2))
        if kind == "mean_absolute_error":
            return float(np.mean(np.abs(prediction - target)))
        return _mean(keras.losses.binary_crossentropy(target, prediction, from_logits=reads == "logits"))

    single = prediction.size == len(prediction) and not broadcast and bool(((target == 0) | (target == 1)).all())
    return elementwise(compute, target, broadcast=broadcast, classes=2 if single else None)


@contextmanager
def own_loss(model: keras.Model) -> Iterator[None]:
    """Let the model pair its losses with its outputs again, and forget that on leaving.

    The pairing is made once, for the first batch; another structure of batches would be refused afterwards.
    """
    pairing = getattr(model, "_compile_loss", None)
    if pairing is None:
        yield
        return
    fresh = type(pairing)(pairing._user_loss, pairing._user_loss_weights, pairing.reduction, pairing.output_names)
    vars(model)["_compile_loss"] = fresh  # past Keras' tracking of attributes
    try:
        yield
    finally:
        vars(model)["_compile_loss"] = pairing
