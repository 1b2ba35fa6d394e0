"""Compares the training data of a Keras model with its evaluation data: their rows, and their targets' units."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import keras
import numpy as np

from diagnostics.collectors.keras.batch import as_array, inputs_of, unpack
from diagnostics.collectors.keras.data import KerasData, rows_of
from diagnostics.collectors.keras.model import has_own_train_step
from diagnostics.collectors.shared.input_sample import samples_of_batches
from diagnostics.collectors.shared.split_overlap import SECONDS, compared_rows
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputFacts, InputSample, TargetSides
from diagnostics.facts.pipeline import Fact

BATCHES = 16  # of either side, whose targets are compared, within `SECONDS`
MOST = 4096  # numbers of a batch of targets: more are pictures


def compared_splits(model: keras.Model, training: KerasData, evaluation: KerasData) -> Iterator[Fact]:
    """Yield what the data shares with the evaluation data, and their targets, if `fit` compares these itself."""
    sides = None if has_own_train_step(model) else _target_sides(training, evaluation)
    if sides is not None:
        yield sides
    for split in compared_rows(rows_of(training, SECONDS), rows_of(evaluation, SECONDS)):
        yield replace(split, training_size=training.size, evaluation_size=evaluation.size)


def _target_sides(training: KerasData, evaluation: KerasData) -> TargetSides | None:
    """Return the targets of both sides, with a part of the inputs; None if they are not one array of numbers."""
    ours, theirs = _read(training), _read(evaluation)
    if ours is None or theirs is None or ours[0].shape[1:] != theirs[0].shape[1:]:
        return None
    both = ours[1].keys() & theirs[1].keys()
    inputs = InputFacts({name: ours[1][name] for name in both}, {name: theirs[1][name] for name in both})
    return TargetSides(ours[0], theirs[0], inputs if both else None)


def _read(data: KerasData) -> tuple[Array, dict[str, InputSample]] | None:
    targets, inputs, begun = list[Array](), [], time.monotonic()
    for batch in islice(data.batches(), BATCHES):
        _, y, _ = unpack(batch)
        values = None if y is None or isinstance(y, dict | list | tuple) else as_array(y)
        if values is None or values.dtype.kind != "f" or not values.ndim or values.size > MOST:
            return None
        targets.append(values.reshape(len(values), -1).astype(np.float64))
        inputs.append(inputs_of(batch))
        if time.monotonic() - begun > SECONDS:
            break
    if not targets or len({part.shape[1] for part in targets}) > 1:
        return None
    return np.concatenate(targets), samples_of_batches(inputs)
