"""Asks the metric of a Trainer about predictions that are all right."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import EvalPrediction, Trainer

from diagnostics.collectors.shared.arrays import fields, to_array
from diagnostics.collectors.shared.pipeline import CannotJudge, users_code
from diagnostics.facts.trials import MetricFacts

from .call_safety import is_overridden

# Logit of the true class in a prediction that is surely right; the others get its negative. Whole numbers a metric
# may take for labels.
CONFIDENT = 9.5


def ask_metric(trainer: Trainer, target: Any, classes: int | None, objection: str | None) -> MetricFacts:
    """Hand `compute_metrics` predictions that are all right: as logits, and as classes.

    Args:
        trainer: whose metric it is.
        target: the labels of a batch, of any shape.
        classes: their number; None if not known.
        objection: why `compute_metrics` must not be called; None if it may be.

    Raises:
        CannotJudge: there is no metric, or no perfect answer can be made up.
    """
    if trainer.compute_metrics is None:
        raise CannotJudge("the Trainer has no compute_metrics")
    if getattr(trainer.args, "predict_with_generate", False):
        raise CannotJudge("the metric gets the token ids that the model generates, not logits")
    if (own := is_overridden(trainer, "prediction_step", "evaluation_loop", "evaluate")) is not None:
        raise CannotJudge(f"{type(trainer).__name__}.{own} decides what the metric gets")
    if objection is not None:
        raise CannotJudge(f"the metric was not called: {objection}")
    labels = to_array(target)
    if classes is None or labels is None or not np.issubdtype(labels.dtype, np.integer):
        raise CannotJudge("the labels are not class indices, so perfect predictions cannot be constructed")
    true = np.where((labels >= 0) & (labels < classes), labels, 0)
    logits = np.full((*labels.shape, classes), -CONFIDENT, dtype=np.float32)
    np.put_along_axis(logits, true[..., None], CONFIDENT, axis=-1)
    on_logits, error = _ask(trainer, _preprocessed(trainer, logits, labels), labels)
    on_classes, _ = _ask(trainer, true, labels)
    return MetricFacts(on_logits, on_classes, error)


def _preprocessed(trainer: Trainer, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    preprocess = trainer.preprocess_logits_for_metrics
    if preprocess is None:
        return logits
    with users_code():
        predictions = preprocess(torch.from_numpy(logits), torch.from_numpy(labels))
    array = to_array(next(iter(fields(predictions).values()), None))
    return logits if array is None else array


def _ask(
    trainer: Trainer, predictions: np.ndarray, labels: np.ndarray
) -> tuple[dict[str, float] | None, str | None]:
    """Return the metric's numbers, or what it raised."""
    try:
        answer = trainer.compute_metrics(EvalPrediction(predictions=predictions, label_ids=labels))
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    numbers = {
        str(name): array for name, value in fields(answer).items() if (array := to_array(value)) is not None
    }
    return {name: float(array) for name, array in numbers.items() if array.ndim == 0}, None
