"""The experiments: what each changes, in which order, with how many steps, within which time. No framework."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.experiments import MAKES_UP, ExperimentRun, Experiments, learns_below
from diagnostics.text.join import listed

from .experiment import Experiment, Setup, together

NEAR = (
    0.25  # of a standard deviation: inputs whose mean is so close to 0, and whose deviation to 1, are standardised
)
NAMED = 3  # layers
ADAM_RATE = 1e-3  # its default
EXTREME = 1e4  # times the script's rate: tried if the unchanged copy hardly moves
LEAST_S = 0.2  # of the time that must be left: to prepare takes a part of it
TOO_SHORT = "there was too little time (--second-look 20 allows 20 seconds)"
STEPS, FEWEST_STEPS = 150, 30  # of a copy
REPEATED = 3  # copies without a change
RATES = 4  # that are tried, on average
PACED = 4  # steps that show how long one takes
STILL = 0.02  # of its first loss: a copy that changes it by less in all its steps hardly moves
WORSE = 2.0  # times that loss: a rate with which a copy ends there is too high, and so are those above it


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
    return (
        f"standardise the targets, (targets - {mean:.4g}) / {deviation:.4g}, and convert the predictions back: "
        f"outputs * {deviation:.4g} + {mean:.4g}"
    )


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
    "standardise the inputs: (x - mean) / std, with each feature's mean and std over the training set",
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
    lambda setup: "target = target.reshape(prediction.shape)  # {1} to {0}".format(*map(list, setup.shapes)),
)
SHUFFLED_ROWS = Experiment(
    "rows shuffled",
    lambda setup: None if len(setup.rows.batches) > 1 else "all rows are in one batch",
    _shuffle_rows,
    "with shuffled rows",
    _written(
        "shuffle the rows in each epoch: DataLoader(..., shuffle=True), or torch.randperm(len(x)) in a loop over "
        "slices",
        "shuffle the rows in each epoch: model.fit(..., shuffle=True), or dataset.shuffle(len(x)) for a "
        "tf.data.Dataset",
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
        "unfreeze these layers with parameter.requires_grad = True, and pass their parameters to the optimizer",
        "layer.trainable = True  # before model.compile",
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
        "remove the custom initialisation: PyTorch's layers start with good weights",
        "remove kernel_initializer and set_weights from a training that starts from scratch",
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
        "keep the weights in float32 with model.float(), and use torch.autocast(..., dtype=torch.bfloat16) for "
        "speed",
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

# What is wrong where it can be done at all comes first; then what is most often the cause; then what rarely is.
FIRST = (
    ALIGNED_TARGETS,
    TRAINING_MODE,
    UNFROZEN,
    STANDARDISED_INPUTS,
    STANDARDISED_TARGETS,
    WITHOUT_LAST_ACTIVATION,
    FLOAT32,
)
UP, DOWN = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6), (0.1, 0.01, 1e-3, 1e-4)
LAST = (
    WITH_ADAM,
    DEFAULT_INITIALISATION,
    SHUFFLED_ROWS,
    WITHOUT_CLIPPING,
    WITHOUT_SCHEDULE,
    WITHOUT_DECAY,
    WITHOUT_NORMALISATION,
    WITHOUT_DROPOUT,
)
TOGETHER = (together(STANDARDISED_TARGETS, WITH_ADAM), together(STANDARDISED_INPUTS, WITH_ADAM))


def run_experiments(
    make: Callable[[], Setup], deadline: float, steps: int = STEPS, level: float = math.inf
) -> Experiments | str:
    """Run copies without and with changes until the time is over.

    Args:
        make: makes what a run is made of, each time the same.
        deadline: of `time.monotonic`; no run is begun after it, and one that has begun is dropped.
        steps: of a copy, at most; fewer if the time is short.
        level: see `Experiments`.

    Returns:
        What was measured, or why nothing was.
    """
    if deadline - time.monotonic() < LEAST_S:
        return TOO_SHORT
    try:
        return _measured(make, deadline, steps, level)
    except Exception as error:  # a model may not take other rows than the script's batches
        return f"an unchanged copy raised {type(error).__name__}"


def _measured(make: Callable[[], Setup], deadline: float, steps: int, level: float) -> Experiments | str:
    constant = make().constant()
    if not math.isfinite(constant) or constant <= 0:
        return "the loss of the best constant prediction is not known"
    make().run(1)  # the first step of a process may take long
    fixed = _seconds(lambda: make().run(1))
    pace = max(1e-6, (_seconds(lambda: make().run(1 + PACED)) - fixed) / PACED)
    runs = REPEATED + RATES + sum(each.objection(make()) is None for each in (*FIRST, *LAST))
    steps = min(steps, int(((deadline - time.monotonic()) / runs - fixed) / pace))
    if steps < FEWEST_STEPS:
        return TOO_SHORT
    return _Plan(make, deadline, steps, constant, level).run()


def _seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


class _Plan:
    def __init__(
        self, make: Callable[[], Setup], deadline: float, steps: int, constant: float, level: float
    ) -> None:
        self._make, self._deadline, self._steps, self._constant = make, deadline, steps, constant
        self._level = level
        self._runs: list[ExperimentRun] = []
        self._left_out: dict[str, str] = {}
        self._unchanged: list[ExperimentRun] = []

    def run(self) -> Experiments | str:
        for repetition in range(REPEATED):
            one = self._trained(self._make(), ExperimentRun(), repetition)
            if one is None:
                return TOO_SHORT
            if not math.isfinite(one.reached):
                return "the loss of an unchanged copy is not finite"
            if one.reached < learns_below(self._constant, self._level):
                return (
                    f"an unchanged copy does learn: its loss reaches {one.reached:.4g} in {self._steps} steps, "
                    f"where a constant prediction would score {self._constant:.4g}"
                )
            self._unchanged.append(one)
        for experiment in FIRST:
            self._try(experiment)
        self._try_rates()
        for experiment in LAST:
            self._try(experiment)
        if not self._facts().cures:
            for both in TOGETHER:
                self._try(both)
        self._confirm()
        return self._facts()

    def _try_rates(self) -> None:
        """Try a rate on each side; go on where the unchanged copy needs it, until one helps or makes it worse."""
        began = self._make().run(0).held_out
        up = abs(self._unchanged[0].reached - began) < STILL * abs(began)
        for factor in (UP[0], DOWN[0], *(UP if up else DOWN)[1:]):
            self._try(at_rate(factor))
            latest = self._runs[-1] if self._runs else None
            helps = any(cure.rate is not None for cure in self._facts().cures)
            worse = latest is not None and latest.rate is not None and not latest.reached <= WORSE * began
            if helps or (worse and up and factor > 1):
                return

    def _try(self, experiment: Experiment) -> None:
        setup = self._make()
        try:
            why = experiment.objection(setup)
            if why is None and time.monotonic() > self._deadline:
                why = "there was no time left"
            if why is not None:
                self._left_out[experiment.name] = why
                return
            described = experiment.described(setup)
            experiment.change(setup)
            one = self._trained(setup, described)
        except Exception as error:  # a copy that was changed may fail in any way
            self._left_out[experiment.name] = f"the copy raised {type(error).__name__}"
            return
        if one is None:
            self._left_out[experiment.name] = "there was no time left"
        else:
            self._runs.append(one)

    def _trained(self, setup: Setup, described: ExperimentRun, repetition: int = 0) -> ExperimentRun | None:
        """Train a copy; None if the time was over before its last step."""
        start = repetition * len(setup.rows.batches) // REPEATED
        reached = setup.run(self._steps, start, stop=lambda: time.monotonic() > self._deadline)
        if len(reached.losses) < self._steps and math.isfinite(reached.held_out):
            return None
        return replace(described, losses=reached.losses, reached=reached.held_out)

    def _confirm(self) -> None:
        """Repeat the best change with the batches in another order; what does not hold counts as not helping."""
        by_name = {each.name: each for each in (*FIRST, *LAST, *TOGETHER)}
        by_name |= {rate.name: rate for rate in map(at_rate, (*UP, *DOWN))}
        while cures := self._facts().cures:
            setup, best = self._make(), cures[0]
            by_name[best.name].change(setup)
            again = self._trained(setup, best, repetition=1)
            if again is None:
                return
            place = self._runs.index(best)
            self._runs[place] = replace(best, reached=max(best.reached, again.reached))
            if self._facts().cures[:1] == (self._runs[place],):
                return

    def _facts(self) -> Experiments:
        rows = self._make().rows
        return Experiments(
            tuple(self._unchanged),
            tuple(self._runs),
            self._constant,
            len(rows.held_out),
            len(rows.trained),
            dict(self._left_out),
            self._level,
        )
