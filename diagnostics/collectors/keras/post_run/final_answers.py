"""Scores what a trained model answers to rows of its training data, output by output.

For what the loss of a run does not show: which of several outputs has learned, and a model with penalties.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.examine.kept_outputs import KeptOutputs, by_name, keep_outputs, names_of_outputs
from diagnostics.collectors.keras.optimizer import steps_made
from diagnostics.collectors.keras.post_run import PostRunCheck
from diagnostics.collectors.shared.learnability import simple_fit
from diagnostics.facts.array import Array
from diagnostics.facts.course import FinalAnswers, OutputScore
from diagnostics.facts.loss_contracts import LossKind

if TYPE_CHECKING:
    from diagnostics.collectors.keras.watch.sampled_rows import SampledRows

PART = 128  # rows at a time
LEAST = 1e-12  # of a probability
NEAR = 0.95  # of the constant prediction's error: below it no fit is made


class OutputScores(PostRunCheck):
    """Asks about the rows that the examination has kept, or that a running `fit` has drawn."""

    kept: KeptOutputs | None = None
    drawn: SampledRows | None = None

    def on_examined(self, model: keras.Model, pipeline: Any) -> None:
        """See `PostRunCheck.on_examined`."""
        self.kept, self.drawn = getattr(pipeline, "outputs_kept", None), getattr(pipeline, "rows_drawn", None)

    def facts(self) -> Iterable[FinalAnswers | None]:
        """Return the scores; nothing where no rows were kept."""
        kept = self.kept
        if kept is None and self.drawn is not None:
            kept = keep_outputs(self.subject.model, self.drawn)
        return () if kept is None else (final_answers(self.subject.model, kept, self.subject.deadline),)


def final_answers(model: keras.Model, kept: KeptOutputs, deadline: float) -> FinalAnswers | None:
    """Ask the model, in inference mode, and score its answers; None where time is over.

    Args:
        model: as the script left it.
        kept: rows.
        deadline: of `time.monotonic`.
    """
    answers: dict[str, list[Array]] = {name: [] for name in kept.wanted}
    names = names_of_outputs(model)
    for start in range(0, len(kept.inputs[0]), PART):
        if time.monotonic() > deadline:
            return None
        tensors = [tf.convert_to_tensor(part[start : start + PART]) for part in kept.inputs]
        given = by_name(model(keras.tree.pack_sequence_as(kept.structure, tensors), training=False), names)
        if given is None:
            return None
        for name, values in answers.items():
            values.append(np.asarray(tf.cast(given[name], tf.float32), np.float64))
    scores = tuple(_scores(kept, {name: np.concatenate(values) for name, values in answers.items()}))
    keeps_statistics = any(isinstance(one, keras.layers.BatchNormalization) for one in model._flatten_layers())
    return FinalAnswers(scores, steps_made(model.optimizer), keeps_statistics) if scores else None


def _scores(kept: KeptOutputs, answers: Mapping[str, Array]) -> Iterator[OutputScore]:
    for name, wanted in kept.wanted.items():
        values, targets = answers[name], wanted.targets
        if wanted.kind == "cross_entropy" and values.ndim == 2:  # classes that these rows do not have
            targets = np.pad(targets, ((0, 0), (0, max(0, values.shape[1] - targets.shape[1]))))
        if values.size != targets.size or not np.isfinite(values).all():
            continue
        values, mean = values.reshape(targets.shape), targets.mean(axis=0)
        constant = np.broadcast_to(mean, targets.shape)
        logits = wanted.logits or bool(values.min() < 0 or values.max() > 1)
        error = _error(wanted.kind, _probabilities(wanted.kind, values) if logits else values, targets)
        least = _error(wanted.kind, constant, targets)
        fit = None
        if len(kept.inputs) == 1 and error >= NEAR * least:
            fit = simple_fit(kept.inputs[0], targets, wanted.kind != "mean_squared_error")
        yield OutputScore(
            name, wanted.kind, len(targets), error, least, (float(values.min()), float(values.max())),
            float(targets.mean()), float(targets.std()), fit, wanted.weight,
        )  # fmt: skip


def _probabilities(kind: LossKind, values: Array) -> Array:
    if kind == "mean_squared_error":
        return values
    if kind == "binary_cross_entropy":
        return np.asarray(1 / (1 + np.exp(-np.clip(values, -500, 500))))
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _error(kind: LossKind, values: Array, targets: Array) -> float:
    if kind == "mean_squared_error":
        return float(np.square(values - targets).mean())
    logs = targets * np.log(np.maximum(values, LEAST))
    if kind == "binary_cross_entropy":
        logs = logs + (1 - targets) * np.log(np.maximum(1 - values, LEAST))
    return -float(logs.sum() / len(targets))
