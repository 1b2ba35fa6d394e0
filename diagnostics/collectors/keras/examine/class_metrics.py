"""Tests those of Keras' metrics that compare class numbers on answers as the model gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import is_one_hot
from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.facts.array import Array
from diagnostics.facts.trials import MetricFacts

COMPARING = (keras.metrics.Accuracy, keras.metrics.MeanIoU)  # not their subclasses, which may look for the maximum
SURE = 0.9  # probability of the true class


def class_metrics(model: keras.Model) -> dict[str, Any]:
    """Return copies of the metrics that a model was compiled with and that compare class numbers, by name."""
    compiled = getattr(model, "_compile_metrics", None)
    given = [
        *keras.tree.flatten(getattr(compiled, "_user_metrics", None) or []),
        *keras.tree.flatten(getattr(compiled, "_user_weighted_metrics", None) or []),
    ]
    return {one.name: type(one).from_config(one.get_config()) for one in given if type(one) in COMPARING}


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
    return MetricFacts(on_logits=scores["probabilities"], on_classes=scores["classes"], answers="probabilities")


def _answers(target: Array, outputs: tuple[int, ...]) -> tuple[Array, Array]:
    width = outputs[-1] if len(outputs) > 1 else 1
    if width > 1 and target.shape == outputs and is_one_hot(target):
        return target, np.where(target == 1, SURE, (1 - SURE) / (width - 1))
    if width == 1 and target.size == int(np.prod(outputs)) and bool(((target == 0) | (target == 1)).all()):
        return target, np.where(target == 1, SURE, 1 - SURE)
    raise CannotJudge("needs targets that are 0 or 1, in the shape of the answers")


def _score(metric: Any, target: Array, answers: Array) -> float:
    try:
        metric.reset_state()
        metric.update_state(target, answers)
        return float(metric.result())
    except Exception as error:  # one that is given other targets than these
        raise CannotJudge(f"{type(metric).__name__} does not take these targets") from error
