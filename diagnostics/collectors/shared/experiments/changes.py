"""The experiments: what is changed in the data, the model, and how the weights are updated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.experiments import MAKES_UP
from diagnostics.text.join import listed

from .experiment import Experiment, Setup

NEAR = (
    0.25  # of a standard deviation: inputs whose mean is so close to 0, and whose deviation to 1, are standardised
)
NAMED = 3  # layers
ADAM_RATE = 1e-3  # its default
EXTREME = 1e4  # times the script's rate: tried if the unchanged copy hardly moves


def _sets(**fields: Any) -> Callable[[Setup], None]:
    """Return a change that sets fields of a setup."""

    def change(setup: Setup) -> None:
        for name, value in fields.items():
            setattr(setup, name, value)

    return change


def _written(torch: str, keras: str) -> Callable[[Setup], str]:
    """Return a fix in the code of either library."""
    return lambda setup: keras if setup.library == "keras" else torch


def _unless(layers: str, otherwise: str) -> Callable[[Setup], str | None]:
    """Return an objection: there are no layers of a kind."""
    return lambda setup: None if setup.layers(layers) else otherwise


# The data: its scale, its shape, its order.


def _inputs_objection(setup: Setup) -> str | None:
    inputs = setup.measured_inputs()
    if not inputs:
        return "the inputs hold no floating-point numbers"
    if not all(np.isfinite(values).all() for values in inputs.values()):
        return "the inputs hold NaN or infinite numbers"
    stand = all(abs(values.mean()) <= NEAR and abs(values.std() - 1) <= NEAR for values in inputs.values())
    return "the inputs are standardised" if stand else None


def _standardise_inputs(setup: Setup) -> None:
    trained = setup.rows.trained
    changed = {path: _standardised(values, trained) for path, values in setup.measured_inputs().items()}
    setup.rows = replace(setup.rows, inputs={**setup.rows.inputs, **changed})


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


def _targets_objection(setup: Setup) -> str | None:
    if setup.contract.targets != "numbers":
        return "the targets are not plain numbers"
    mean, deviation = _scale(setup)
    if not deviation or not np.isfinite(mean + deviation):
        return "the targets do not vary"
    return "the targets are standardised" if abs(mean) <= NEAR and abs(deviation - 1) <= NEAR else None


def _standardise_targets(setup: Setup) -> None:
    setup.target_scale = _scale(setup)  # losses are reported in the original unit


def _targets_fix(setup: Setup) -> str:
    mean, deviation = _scale(setup)
    return f"targets = (targets - {mean:.4g}) / {deviation:.4g}, and outputs * {deviation:.4g} + {mean:.4g}"


def _shapes_objection(setup: Setup) -> str | None:
    given, target = setup.shapes
    if setup.contract.targets == "classes" or given == target:
        return "prediction and target agree in their shapes"
    return None if np.prod(given) == np.prod(target) else "prediction and target differ in their sizes"


def _shuffle_rows(setup: Setup) -> None:
    setup.rows = setup.rows.shuffled()


STANDARDISED_INPUTS = Experiment(
    "inputs standardised",
    _inputs_objection,
    _standardise_inputs,
    "with standardised inputs",
    "(x - mean) / std, with the mean and std of each feature in the training set",
    rule="unscaled-inputs",
)
STANDARDISED_TARGETS = Experiment(
    "targets standardised",
    _targets_objection,
    _standardise_targets,
    "with standardised targets",
    _targets_fix,
)
ALIGNED_TARGETS = Experiment(
    "target shape aligned",  # so that nothing is broadcast
    _shapes_objection,
    _sets(aligned=True),
    "with the target reshaped like the prediction",
    lambda setup: "target.reshape(prediction.shape): they are {} and {}".format(*map(list, setup.shapes)),
)
SHUFFLED_ROWS = Experiment(
    "rows shuffled",
    lambda setup: None if len(setup.rows.batches) > 1 else "all rows are in one batch",
    _shuffle_rows,
    "with shuffled rows",
    _written(
        "DataLoader(..., shuffle=True); in a loop over slices, a new torch.randperm(len(x)) in each epoch",
        "model.fit(..., shuffle=True); dataset.shuffle(len(x)) of a tf.data.Dataset",
    ),
)

# The model: its mode, its layers, its first weights.


def _activation_objection(setup: Setup) -> str | None:
    known = setup.contract.targets in ("classes", "shares", "numbers")
    if setup.contract.reads not in ("logits", None) or not known:
        return "the loss expects the result of the last activation"
    return None if setup.last_activation() else "the prediction is not the result of an activation"


def _without(name: str, kind: str) -> Experiment:
    """Leave out the layers of one kind."""
    return Experiment(
        name,
        _unless(kind, f"there is no {kind}"),
        lambda setup: setup.remove(kind),
        f"without {kind}",
        lambda setup: f"remove the {kind}, or use less of it: {listed(setup.layers(kind), most=NAMED)}",
    )


TRAINING_MODE = Experiment(
    "training mode",
    _unless("idle", "no layer that depends on the mode is in evaluation mode"),
    lambda setup: setup.set_training_mode(),
    "in training mode",
    _written(
        "model.train()  # before the training loop, and after each evaluation",
        "model(x, training=True)",
    ),
)
UNFROZEN = Experiment(
    "unfrozen",
    _unless("frozen", "every weight is trained"),
    lambda setup: setup.unfreeze(),
    lambda setup: f"with the frozen layers unfrozen ({listed(setup.layers('frozen'), most=NAMED)})",
    _written(
        "parameter.requires_grad = True for these layers, and give their parameters to the optimizer",
        "layer.trainable = True, before model.compile",
    ),
)
WITHOUT_LAST_ACTIVATION = Experiment(
    "last activation removed",
    _activation_objection,
    lambda setup: setup.remove_last_activation(),
    lambda setup: f"without the last {setup.last_activation()}",
    lambda setup: f"remove the {setup.last_activation()} after the last layer",
)
DEFAULT_INITIALISATION = Experiment(
    "default initialisation",
    _unless("initialised", "no layer can draw its first weights again"),
    lambda setup: setup.initialise(),
    "with the default initialisation",
    _written(
        "leave out the custom initialisation: PyTorch's layers draw good first weights",
        "leave out kernel_initializer, and set_weights, in the first training",
    ),
)
WITHOUT_DROPOUT = _without("dropout off", "dropout")
WITHOUT_NORMALISATION = _without("normalisation off", "normalisation")
FLOAT32 = Experiment(
    "float32",
    _unless("half", "the weights are not in half precision"),
    lambda setup: setup.to_float32(),
    "in float32",
    _written(
        "model.float(), and torch.autocast(..., dtype=torch.bfloat16) instead of half precision weights",
        'keras.mixed_precision.set_global_policy("float32")',
    ),
)

# How the weights are updated.


def at_rate(factor: float) -> Experiment:
    """Train by the script's optimizer at another learning rate: so many times the script's."""
    times = f"* {factor:,.10g}" if factor > 1 else f"/ {1 / factor:,.10g}"

    def rate(setup: Setup) -> float:
        return setup.rate * factor

    return Experiment(
        f"learning rate {times}",
        lambda setup: None,
        _sets(factor=factor),
        lambda setup: f"at a learning rate of {rate(setup):.3g} instead of {setup.rate:.3g}",
        lambda setup: _rate_fix(setup, setup.optimizer, rate(setup)),
        rule="learning-rate-too-low" if factor > 1 else "learning-rate-too-high",
        breadth=MAKES_UP if factor >= EXTREME else 1,  # one so high may only make up for what shrinks the steps
        rate=rate,
    )


def _rate_fix(setup: Setup, optimizer: str, rate: float) -> str:
    """Return the line of code that sets optimizer and rate."""
    if setup.library == "keras":
        return f"optimizer=keras.optimizers.{optimizer}(learning_rate={rate:.3g})"
    if setup.library == "trainer":
        return f"TrainingArguments(..., learning_rate={rate:.3g})"
    return f"torch.optim.{optimizer}(model.parameters(), lr={rate:.3g})"


WITH_ADAM = Experiment(
    "Adam",
    lambda setup: "the optimizer is Adam" if "adam" in setup.optimizer.lower() else None,
    _sets(with_adam=True),
    lambda setup: f"with Adam at {ADAM_RATE:g} instead of {setup.optimizer} at {setup.rate:.3g}",
    lambda setup: _rate_fix(setup, "Adam", ADAM_RATE),
    breadth=2,
)
WITHOUT_CLIPPING = Experiment(
    "no clipping",
    lambda setup: "gradients are not clipped" if setup.clip is None else None,
    _sets(clip=None),
    lambda setup: f"without clipping gradients to {setup.clip:.3g}",
    "clip at a norm that only outliers exceed, or not at all",
)
WITHOUT_DECAY = Experiment(
    "no weight decay",
    lambda setup: None if setup.decays else "the weights are not decayed",
    _sets(decays=False),
    "without weight decay",
    lambda setup: f"{setup.optimizer}(..., weight_decay=0)  # 1e-4 to 1e-2 is usual",
)
WITHOUT_SCHEDULE = Experiment(
    "no schedule",
    lambda setup: None if setup.rates else "the learning rate is constant",
    _sets(rates=()),
    lambda setup: f"at a constant learning rate of {setup.rate:.3g}",
    "remove the schedule, or let it decay only towards the end of the run",
)
