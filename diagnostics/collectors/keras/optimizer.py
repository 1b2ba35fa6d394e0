"""Turns Keras' optimizers into facts, and builds others like them."""

from __future__ import annotations

import inspect
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.facts.pipeline import OptimizerFacts

from .harmless import of_rate
from .values import number_of

_SCHEDULE_STEPS = (0, 10, 100, 1_000, 10_000, 100_000)  # where a schedule is asked for its rate


def optimizer_facts(model: keras.Model) -> OptimizerFacts:
    """Turn the optimizer that the model was compiled with into facts, compared with the model."""
    optimizer = inner_optimizer(model)
    trainable = model.trainable_variables
    # An optimizer is given its variables when training begins; until then it is everything that is trainable.
    held = {id(v) for v in optimizer._trainable_variables} if optimizer.built else {id(v) for v in trainable}
    known = why_rate_is_unknown(optimizer) is None
    return OptimizerFacts(
        name=type(optimizer).__name__,
        learning_rates=(full_rate(optimizer),) if known else (),
        missing={v.path: int(np.prod(v.shape)) for v in trainable if id(v) not in held},
        held=sum(id(v) in held for v in trainable),
        foreign=len(held - {id(v) for v in model.variables}),
        default_rate=_default_rate(type(optimizer)) if known else None,
    )


def inner_optimizer(model: keras.Model) -> Any:
    """Return the optimizer that the model was compiled with, not the one around it that scales the loss."""
    return _inner(getattr(model, "optimizer", None))


def steps_made(optimizer: Any) -> int:
    """Return the steps that an optimizer has counted; 0 before it has a counter, and without an optimizer."""
    iterations = getattr(optimizer, "iterations", None)
    try:
        return 0 if iterations is None else int(number_of(iterations))
    except Exception:  # it is being made within a function that is traced: there is no value yet
        return 0


def why_rate_is_unknown(optimizer: Any) -> str | None:
    """Say why an optimizer's schedule must not be asked for a rate; None if it may be."""
    code = of_rate(optimizer)
    return None if code.objection is None else f"asking the schedule for it could be noticed: {code.objection}"


def full_rate(optimizer: Any) -> float:
    """Return the learning rate; of a schedule, the largest that it comes to.

    Raises:
        CannotJudge: the schedule must not be asked.
    """
    return max(_rates(optimizer))


def rates_of(optimizer: Any, steps: int) -> tuple[float, ...]:
    """Return the rates that a schedule of Keras gives the first steps; nothing for any other rate."""
    rate = _inner(optimizer)._learning_rate
    if not isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) or why_rate_is_unknown(optimizer):
        return ()
    return tuple(number_of(rate(step)) for step in range(steps))


def warms_up(optimizer: Any) -> bool:
    """Say whether a schedule begins below its largest rate.

    Raises:
        CannotJudge: the schedule must not be asked.
    """
    rates = _rates(optimizer)
    return rates[0] < 0.9 * max(rates)


def settings_of(optimizer: Any) -> dict[str, Any]:
    """Return the settings of an optimizer without its learning rate.

    Its `get_config` would also ask a schedule, and the schedules that users write often have no `get_config`.
    """
    inner = _inner(optimizer)
    without_schedule = object.__new__(type(inner))
    vars(without_schedule).update(vars(inner), _learning_rate=0.0)
    settings: dict[str, Any] = without_schedule.get_config()
    del settings["learning_rate"]
    return settings


def optimizer_like(optimizer: Any) -> keras.optimizers.Optimizer:
    """Build a fresh optimizer with the same settings and a plain learning rate."""
    inner = _inner(optimizer)
    settings = {
        **settings_of(inner),
        "learning_rate": full_rate(inner),
        "gradient_accumulation_steps": None,
    }
    return type(inner).from_config(settings)


def _rates(optimizer: Any) -> list[float]:
    """Return the rates that an optimizer comes to, the first one first."""
    inner = _inner(optimizer)
    rate = inner._learning_rate
    if not callable(rate):
        return [number_of(rate)]
    if (why := why_rate_is_unknown(inner)) is not None:
        raise CannotJudge(f"the learning rate is not known: {why}")
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return [number_of(rate(step)) for step in _SCHEDULE_STEPS]
    return [number_of(rate())]


def _inner(optimizer: Any) -> Any:
    return getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer


def _default_rate(kind: type) -> float | None:
    parameter = inspect.signature(kind).parameters.get("learning_rate")
    return (
        float(parameter.default) if parameter is not None and isinstance(parameter.default, int | float) else None
    )
