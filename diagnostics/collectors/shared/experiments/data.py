"""Experiments that change the data: its scale, its shape, its order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from diagnostics.facts.array import Array

from .experiment import Experiment, Setup

NEAR = (
    0.25  # of a standard deviation: inputs whose mean is so close to 0, and whose deviation to 1, are standardised
)


class StandardisedInputs(Experiment):
    """Features with mean 0 and standard deviation 1."""

    name = "inputs standardised"
    rule = "unscaled-inputs"

    def _objection(self, setup: Setup) -> str | None:
        inputs = setup.measured_inputs()
        if not inputs:
            return "the inputs hold no floating-point numbers"
        if not all(np.isfinite(values).all() for values in inputs.values()):
            return "the inputs hold NaN or infinite numbers"
        stand = all(abs(values.mean()) <= NEAR and abs(values.std() - 1) <= NEAR for values in inputs.values())
        return "the inputs are standardised" if stand else None

    def _change(self, setup: Setup) -> None:
        trained = setup.rows.trained
        changed = {path: _standardised(values, trained) for path, values in setup.measured_inputs().items()}
        setup.rows = replace(setup.rows, inputs={**setup.rows.inputs, **changed})

    def _phrase(self, setup: Setup) -> str:
        return "with standardised inputs"

    def _fix(self, setup: Setup) -> str:
        return "(x - mean) / std, with mean and std of each feature over the training set"


class StandardisedTargets(Experiment):
    """Targets of a regression with mean 0 and standard deviation 1; losses are reported in the original unit."""

    name = "targets standardised"

    def _objection(self, setup: Setup) -> str | None:
        if setup.contract.targets != "numbers":
            return "the targets are not plain numbers"
        mean, deviation = _scale(setup)
        if not deviation or not np.isfinite(mean + deviation):
            return "the targets do not vary"
        return "the targets are standardised" if abs(mean) <= NEAR and abs(deviation - 1) <= NEAR else None

    def _change(self, setup: Setup) -> None:
        setup.target_scale = _scale(setup)

    def _phrase(self, setup: Setup) -> str:
        return "with standardised targets"

    def _fix(self, setup: Setup) -> str:
        mean, deviation = _scale(setup)
        return f"targets = (targets - {mean:.4g}) / {deviation:.4g}, and outputs * {deviation:.4g} + {mean:.4g}"


class AlignedTargets(Experiment):
    """Targets in the shape of the prediction, so that nothing is broadcast."""

    name = "target shape aligned"

    def _objection(self, setup: Setup) -> str | None:
        given, target = setup.shapes
        if setup.contract.targets == "classes" or given == target:
            return "prediction and target agree in their shapes"
        return None if np.prod(given) == np.prod(target) else "prediction and target differ in their sizes"

    def _change(self, setup: Setup) -> None:
        setup.aligned = True

    def _phrase(self, setup: Setup) -> str:
        return "with the target reshaped like the prediction"

    def _fix(self, setup: Setup) -> str:
        given, target = setup.shapes
        return f"target.reshape(prediction.shape): they are {list(given)} and {list(target)}"


class ShuffledRows(Experiment):
    """Batches of rows from all over the recorded data."""

    name = "rows shuffled"

    def _objection(self, setup: Setup) -> str | None:
        return None if len(setup.rows.batches) > 1 else "all rows are in one batch"

    def _change(self, setup: Setup) -> None:
        setup.rows = setup.rows.shuffled()

    def _phrase(self, setup: Setup) -> str:
        return "with shuffled rows"

    def _fix(self, setup: Setup) -> str:
        if setup.library == "keras":
            return "model.fit(..., shuffle=True); dataset.shuffle(len(x)) of a tf.data.Dataset"
        return "DataLoader(..., shuffle=True); in a loop over slices, a new torch.randperm(len(x)) in each epoch"


def _standardised(values: Array, trained: Array) -> Array:
    """Standardise each column of a table, each channel of images or sequences of features, by the trained rows."""
    if values.ndim == 2:
        axes: tuple[int, ...] = (0,)
    elif values.ndim == 4:  # images: channels are the short axis
        axes = (0, 2, 3) if values.shape[1] <= values.shape[3] else (0, 1, 2)
    else:
        axes = tuple(range(values.ndim))
    known = values[trained].astype(np.float64)
    mean, deviation = known.mean(axis=axes, keepdims=True), known.std(axis=axes, keepdims=True)
    scaled: Array = (values - mean) / np.where(deviation > 0, deviation, 1.0)
    return scaled.astype(values.dtype)


def _scale(setup: Setup) -> tuple[float, float]:
    known = setup.rows.target[setup.rows.trained].astype(np.float64)
    return float(known.mean()), float(known.std())
