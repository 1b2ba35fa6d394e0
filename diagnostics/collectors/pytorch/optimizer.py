"""Reads a PyTorch optimizer, and builds one like it for a copy of the model."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from diagnostics.facts.pipeline import OptimizerFacts

from .local_tensors import is_sharded
from .model import size_of

OptimizerBuilder = Callable[[nn.Module, float], torch.optim.Optimizer]


def unwrapped(optimizer: Any) -> Any:
    """Return the optimizer that another one holds as its attribute ``optimizer``, as accelerate's does."""
    inner = getattr(optimizer, "__dict__", {}).get("optimizer")
    return inner if hasattr(type(inner), "register_step_pre_hook") else optimizer


def optimizer_facts(optimizer: Any, model: nn.Module) -> OptimizerFacts:
    """Turn an optimizer into facts, compared with the model that it should train.

    Between FSDP2's forward and backward pass the model shows whole parameters in place of the shards that the
    optimizer holds: nothing is held or missing then.
    """
    params = [p for group in optimizer.param_groups for p in group["params"]]
    held = {id(p) for p in params}
    own = {id(p): (name, p) for name, p in model.named_parameters()}
    if any(map(is_sharded, params)) and not any(is_sharded(p) for _, p in own.values()):
        held, own = set(), {}
    trainable = {key: (name, p) for key, (name, p) in own.items() if p.requires_grad}
    return OptimizerFacts(
        name=type(optimizer).__name__,
        learning_rates=tuple(float(group.get("lr", math.nan)) for group in optimizer.param_groups),
        missing={name: size_of(p) for key, (name, p) in trainable.items() if key not in held},
        held=sum(key in held for key in trainable),
        foreign=len(held - set(own)),
        default_rate=_default_rate(type(optimizer)),
        frozen=sum(key in held for key in own if key not in trainable),
        full_rate=_scheduled_rate(optimizer),
    )


def facts_together(optimizers: Sequence[Any], model: nn.Module) -> OptimizerFacts:
    """Turn all optimizers of a model into facts, as if they were one."""
    each = [optimizer_facts(optimizer, model) for optimizer in optimizers]
    missing = {
        name: size for name, size in each[0].missing.items() if all(name in one.missing for one in each[1:])
    }
    return dataclasses.replace(
        each[0],
        name=" and ".join(dict.fromkeys(one.name for one in each)),
        learning_rates=tuple(rate for one in each for rate in one.learning_rates),
        missing=missing,
        held=sum(one.held for one in each),
        foreign=sum(one.foreign for one in each),
        frozen=sum(one.frozen for one in each),
    )


def full_rate(optimizer: Any) -> float | None:
    """Return the largest learning rate of the groups; where a schedule is attached, the one it starts from."""
    rates = [float(group.get("initial_lr", group.get("lr", 0.0))) for group in optimizer.param_groups]
    return max(rates, default=0.0) or None


def _scheduled_rate(optimizer: Any) -> float | None:
    """Return the rate that a schedule leads up to, or starts from; None without one."""
    groups = optimizer.param_groups
    peaks = [float(group["max_lr"]) for group in groups if isinstance(group.get("max_lr"), int | float)]
    if peaks:
        return max(peaks)  # of OneCycleLR, whose first rate is a fraction of it
    return full_rate(optimizer) if any("initial_lr" in group for group in groups) else None


def warms_up(optimizer: Any) -> bool | None:
    """Say whether a schedule holds the rate below its full value now; None if one is there and does not."""
    groups = optimizer.param_groups
    if not any("initial_lr" in group for group in groups):
        return False
    return True if any(group["lr"] < group.get("initial_lr", group["lr"]) for group in groups) else None


def like(optimizer: Any, original: nn.Module) -> OptimizerBuilder | None:
    """Return a function that builds an optimizer of the same kind for a copy of `original`.

    It takes the copy and a factor for all learning rates. None for an optimizer that cannot be rebuilt, or that
    cannot take a plain step (`LBFGS` wants a closure).
    """
    optimizer = unwrapped(optimizer)
    if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, torch.optim.LBFGS):
        return None
    names = {id(p): name for name, p in original.named_parameters()}
    accepted = inspect.signature(type(optimizer)).parameters
    settings = {name: value for name, value in optimizer.defaults.items() if name in accepted}
    kind: Any = type(optimizer)
    held = [  # of the optimizer as it is now, which is not kept alive
        (
            [names[id(p)] for p in group["params"] if id(p) in names],
            float(group.get("initial_lr", group["lr"])),
            {key: value for key, value in group.items() if key in accepted},
        )
        for group in optimizer.param_groups
    ]

    def build(copy: nn.Module, factor: float) -> torch.optim.Optimizer:
        parameters = dict(copy.named_parameters())
        groups = [
            {**options, "params": [parameters[name] for name in own], "lr": rate * factor}
            for own, rate, options in held
        ]
        rebuilt: torch.optim.Optimizer = kind(groups, **settings)
        return rebuilt

    try:
        build(original, 1.0)
    except Exception:  # a class of the user's own may want what we do not know
        return None
    return build


def _default_rate(kind: type) -> float | None:
    parameter = inspect.signature(kind).parameters.get("lr")
    return (
        float(parameter.default) if parameter is not None and isinstance(parameter.default, int | float) else None
    )
