"""Pairs what `evaluate` reports with predictions for the same rows; tests metrics that compare class numbers."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.batch import as_array, is_one_hot, unpack
from diagnostics.collectors.keras.losses import kind_of_loss
from diagnostics.collectors.keras.replayable import can_be_read
from diagnostics.collectors.keras.values import number_of
from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import Reads
from diagnostics.facts.metrics import Evaluation, MetricLedger
from diagnostics.facts.trials import MetricFacts
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import subscribe

BATCH = 32  # rows, where `evaluate` is told nothing else
ROWS, BYTES = 20_000, 16 * 2**20  # of an evaluation that is made again
SAME = 1e-3  # relative difference of a loss from the one that was reported
BY_NAME = ("binary_accuracy", "BinaryAccuracy")
COMPARING = ("Accuracy", "MeanIoU")  # of keras.metrics; not their subclasses, which may look for the maximum
OF_EACH_OUTPUT = ("BinaryAccuracy",)  # counts the zeros of a one-hot row as well
SURE = 0.9  # probability of the true class


@dataclass(frozen=True)
class _Kept:
    """The arguments of the latest `evaluate` of a model, what it reported, and the steps made before.

    A `tf.data` pipeline is a weak reference.
    """

    x: Any
    y: Any
    batch_size: int | None
    reported: Mapping[str, float]
    steps: int


class ReportedMetrics:
    """Keeps for each model the latest evaluation of arrays, or of a `tf.data` pipeline of pure steps.

    Nothing is copied. Arrays of one evaluation, of at most 16 MiB, are kept alive.
    """

    def __init__(self, guard: FaultGuard) -> None:
        """Listen until `close`; `guard` runs the work."""
        self._kept: IdentityMap[Any, _Kept] = IdentityMap()
        self.close = subscribe(guard.attempt, (taps.evaluate.after, self._evaluated))

    def _evaluated(
        self,
        result: Any,
        model: Any,
        x: Any = None,
        y: Any = None,
        batch_size: Any = None,
        *others: Any,
        **options: Any,
    ) -> None:
        self._kept.pop(model, None)
        plain = not others and options.get("sample_weight") is None and options.get("steps") is None
        reported = _by_name(model, result)
        data = x if isinstance(x, tf.data.Dataset) else (x, y)
        if not plain or len(reported) < 2 or not can_be_read(data) or model.optimizer is None:
            return
        if isinstance(data, tuple) and (y is None or _size(x) + _size(y) > BYTES):
            return
        size = batch_size if type(batch_size) is int else None
        x = weakref.ref(x) if isinstance(x, tf.data.Dataset) else x
        self._kept[model] = _Kept(x, y, size, reported, int(number_of(model.optimizer.iterations)))

    def ledger(self, model: Any, deadline: float) -> MetricLedger | None:
        """Make the predictions again; None where the model has changed, or its loss is now another.

        Args:
            model: as the script left it.
            deadline: of `time.monotonic`.
        """
        kept = self._kept.get(model)
        if kept is None or int(number_of(model.optimizer.iterations)) != kept.steps:
            return None
        if kind_of_loss(model.loss) == "other":
            return None
        outputs, targets, losses = list[Array](), list[Array](), list[float]()
        for x, y in _batches(kept):
            if time.monotonic() > deadline or sum(map(len, targets)) > ROWS:
                return None
            predictions = model(x, training=False)
            answers, truth = as_array(predictions), as_array(y)
            if answers is None or truth is None or not truth.ndim or len(answers) != len(truth):
                return None
            outputs.append(answers)
            targets.append(truth)
            # Of the tensor itself: a softmax leaves its logits on it, and Keras' losses compute with those.
            losses.append(_mean_loss(model.loss, truth, predictions))
        if any(len({part.shape[1:] for part in parts}) != 1 for parts in (outputs, targets)):
            return None
        answers, truth = np.concatenate(outputs), np.concatenate(targets)
        sizes = tuple(map(len, targets))
        loss = float(np.average(losses, weights=sizes)) + sum(float(penalty) for penalty in model.losses)
        if not abs(loss - kept.reported["loss"]) <= SAME * max(abs(loss), 1e-3):
            return None
        reported = {name: value for name, value in kept.reported.items() if name != "loss"}
        return MetricLedger(evaluations=(Evaluation(answers, truth, reported, loss, sizes, _reads(model.loss)),))


def _by_name(model: Any, result: Any) -> dict[str, float]:
    """Name what `evaluate` returned, in the order of Keras' `_flatten_metrics_in_order`; empty if unclear."""
    if isinstance(result, Mapping):
        named = {str(name): value for name, value in result.items()}
    else:
        parts = [getattr(metric, "metrics", [metric]) for metric in model.metrics]
        names = [str(metric.name) for part in parts for metric in part]
        if not isinstance(result, list) or len(names) != len(result) or len(set(names)) < len(names):
            return {}
        named = dict(zip(names, result, strict=True))
    numbers = {name: float(value) for name, value in named.items() if np.ndim(value) == 0}
    return numbers if "loss" in numbers else {}


def _size(data: Any) -> int:
    return sum(int(getattr(leaf, "nbytes", 0)) for leaf in keras.tree.flatten(data))


def _batches(kept: _Kept) -> Iterator[tuple[Any, ...]]:
    if isinstance(kept.x, weakref.ref):
        for batch in kept.x() or ():
            x, y, weights = unpack(batch)
            yield x, y if weights is None else None
        return
    rows, step = len(keras.tree.flatten(kept.x)[0]), kept.batch_size or BATCH
    for start in range(0, rows, step):
        place = slice(start, start + step)
        yield tuple(
            keras.tree.map_structure(lambda leaf, place=place: tf.convert_to_tensor(leaf[place]), data)
            for data in (kept.x, kept.y)
        )


def _mean_loss(loss: Any, truth: Array, predictions: Any) -> float:
    """Return the mean over a batch of one of Keras' losses."""
    shape = tuple(predictions.shape)
    alike = truth.reshape(shape) if truth.size == int(np.prod(shape)) else truth
    return float(np.mean(keras.losses.get(loss)(alike, predictions)))


def _reads(loss: Any) -> Reads | None:
    if kind_of_loss(loss) not in ("binary_cross_entropy", "cross_entropy"):
        return None
    return "logits" if getattr(loss, "from_logits", False) else "probabilities"


def class_metrics(model: keras.Model) -> dict[str, Any]:
    """Return copies of the metrics that a model was compiled with and that need classes in one form, by name.

    Those of each output by itself only where the outputs exclude each other, and no other accuracy is printed.
    """
    compiled = getattr(model, "_compile_metrics", None)
    given = [
        *keras.tree.flatten(getattr(compiled, "_user_metrics", None) or []),
        *keras.tree.flatten(getattr(compiled, "_user_weighted_metrics", None) or []),
    ]
    made = [keras.metrics.get(one) if one in BY_NAME else one for one in given]
    others = (one if isinstance(one, str) else getattr(one, "name", "") for one in made if not _of_each(one))
    alone = not any(str(name) == "acc" or str(name).endswith("accuracy") for name in others)
    exclusive = kind_of_loss(model.loss) == "cross_entropy"
    wanted = COMPARING + (OF_EACH_OUTPUT if exclusive and alone else ())
    return {one.name: type(one).from_config(one.get_config()) for one in made if _is_one_of(one, wanted)}


def _of_each(metric: Any) -> bool:
    return _is_one_of(metric, OF_EACH_OUTPUT)


def _is_one_of(metric: Any, names: Sequence[str]) -> bool:
    """Return whether a metric is of these classes; the module may be imported while Keras is, so by name."""
    return any(type(metric) is getattr(keras.metrics, name) for name in names)


def metric_facts(metrics: Mapping[str, Any], target: Array, outputs: tuple[int, ...]) -> MetricFacts:
    """Ask metrics twice about answers that are all correct: as probabilities, and as class numbers.

    Args:
        metrics: by name; they are changed.
        target: of a batch.
        outputs: shape of the model's answers to it.

    Raises:
        CannotJudge: the targets are no classes that these outputs tell apart, or a metric does not take them.
    """
    classes, probabilities = _answers(target, outputs)
    scores = {
        answers: {name: _score(metric, classes, given) for name, metric in metrics.items()}
        for answers, given in (("probabilities", probabilities), ("classes", classes))
    }
    wrong = {
        name: _score(metric, classes, np.roll(probabilities, 1, axis=-1))
        for name, metric in metrics.items()
        if _of_each(metric) and classes.shape[-1] > 1
    }
    return MetricFacts(scores["probabilities"], scores["classes"], answers="probabilities", on_wrong=wrong)


def _answers(target: Array, outputs: tuple[int, ...]) -> tuple[Array, Array]:
    width = outputs[-1] if len(outputs) > 1 else 1
    if width > 1 and target.shape == outputs and is_one_hot(target):
        return target, np.where(target == 1, SURE, (1 - SURE) / (width - 1))
    if width == 1 and target.size == int(np.prod(outputs)) and bool(((target == 0) | (target == 1)).all()):
        return target, np.where(target == 1, SURE, 1 - SURE)
    raise CannotJudge("needs targets that are 0 or 1, in the shape of the predictions")


def _score(metric: Any, target: Array, answers: Array) -> float:
    try:
        metric.reset_state()
        metric.update_state(target, answers)
        return float(metric.result())
    except Exception as error:  # one that is given other targets than these
        raise CannotJudge(f"{type(metric).__name__} does not take these targets") from error
