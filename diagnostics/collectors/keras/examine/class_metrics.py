"""Tests those of Keras' metrics that compare class numbers on answers as the model gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import is_one_hot
from diagnostics.collectors.keras.losses import kind_of_loss
from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.facts.array import Array
from diagnostics.facts.trials import MetricFacts

BY_NAME = ("binary_accuracy", "BinaryAccuracy")
COMPARING = (keras.metrics.Accuracy, keras.metrics.MeanIoU)  # not their subclasses, which may look for the maximum
OF_EACH_OUTPUT = (keras.metrics.BinaryAccuracy,)  # counts the zeros of a one-hot row as well
SURE = 0.9  # probability of the true class


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
    return {one.name: type(one).from_config(one.get_config()) for one in made if type(one) in wanted}


def _of_each(metric: Any) -> bool:
    return type(metric) in OF_EACH_OUTPUT


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
