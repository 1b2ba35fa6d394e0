"""Keeps what the evaluations of a Trainer return: predictions, labels and metrics."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from transformers import Trainer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from diagnostics.facts.array import Array
from diagnostics.facts.metrics import Evaluation

from .call_safety import is_overridden

LATEST = 4  # evaluations that are kept
LARGEST = 2**20  # numbers of the predictions that are kept; of larger ones only the class of the highest score
MOST_READ = 2**27  # numbers, whose highest are looked for


class TrainerEvaluations:
    """The latest evaluations that reported more than a loss and the time that they took."""

    def __init__(self) -> None:
        self._latest: deque[Evaluation] = deque(maxlen=LATEST)

    @property
    def latest(self) -> tuple[Evaluation, ...]:
        """The evaluations, in order."""
        return tuple(self._latest)

    def ended(
        self, output: Any, trainer: Trainer, *_arguments: Any, metric_key_prefix: str = "eval", **_: Any
    ) -> None:
        """Take what `evaluation_loop` returned; `metric_key_prefix`: with which its metrics begin."""
        predictions, labels = output.predictions, output.label_ids
        if isinstance(predictions, tuple | list) and predictions:
            predictions = predictions[0]  # a model that returns more than its logits
        loss = f"{metric_key_prefix}_loss"
        reported = {
            name.removeprefix(f"{metric_key_prefix}_"): float(value)
            for name, value in output.metrics.items()
            if type(value) in (int, float) and name != loss
        }
        if not reported or type(predictions) is not np.ndarray or type(labels) is not np.ndarray:
            return
        kept = _kept(predictions, labels)
        generates = getattr(trainer.args, "predict_with_generate", False)
        if kept is None or generates or output.num_samples != len(labels) or len(predictions) != len(labels):
            return
        causal, multi = _is_causal(trainer), _problem(trainer) == "multi_label_classification"
        self._latest.append(
            Evaluation(
                kept,
                labels,
                reported,
                output.metrics.get(loss),
                reads="logits" if multi else None,
                causal=causal,
                pad=getattr(getattr(trainer, "processing_class", None), "pad_token_id", None),
            )
        )


def _kept(predictions: Array, labels: Array) -> Array | None:
    """Return the predictions, or their classes where they are large; None where that would take long."""
    if predictions.size <= LARGEST:
        return predictions
    if predictions.shape[:-1] != labels.shape or not MOST_READ >= predictions.size > labels.size:
        return None
    return predictions.argmax(axis=-1) if labels.size <= LARGEST else None


def _is_causal(trainer: Trainer) -> bool:
    """Whether the loss compares each output with the next label, as that of a causal language model does."""
    own = is_overridden(trainer, "compute_loss") or getattr(trainer, "compute_loss_func", None)
    if own is not None or trainer.label_smoother is not None:
        return False
    model: Any = trainer.model
    inner = getattr(model, "get_base_model", lambda: model)()
    return type(inner).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()


def _problem(trainer: Trainer) -> str | None:
    return getattr(getattr(trainer.model, "config", None), "problem_type", None)
