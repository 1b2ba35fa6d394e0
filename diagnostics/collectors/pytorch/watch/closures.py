"""Has an optimizer's step measured when its gradients are there: within the step, after the closure.

Lightning and skorch compute loss and gradients in a closure that they hand to ``optimizer.step``. A hook before
the step sees the gradients of the step before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from diagnostics.collectors.isolation.patching import FROZEN


class _MeasuredClosure:
    """A closure that measures once it has run for the first time."""

    def __init__(self, closure: Callable[..., Any], measure: Callable[[], object]) -> None:
        self._closure, self._measure = closure, measure
        self._measured = False

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        result = self._closure(*arguments, **options)
        if not self._measured:  # some optimizers call it again, at other weights
            self._measured = True
            self._measure()
        return result


# Not a frame of the user's own in a traceback.
_call: Any = _MeasuredClosure.__call__
_call.__code__ = _call.__code__.replace(co_filename=FROZEN)


class _AfterClosure:
    """An optimizer whose hooks before a step run after the closure, if it is given one."""

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        def before(optimizer: Any, arguments: Any, options: Any) -> Any:
            by_name = "closure" in options
            closure = options["closure"] if by_name else arguments[1] if len(arguments) > 1 else None
            if not callable(closure):
                hook(optimizer, arguments, options)
                return None
            measured = _MeasuredClosure(closure, lambda: hook(optimizer, arguments, options))
            if by_name:
                return arguments, {**options, "closure": measured}
            return (arguments[0], measured, *arguments[2:]), options

        return super().register_step_pre_hook(before)  # type: ignore[misc]


def measured_after_closure(optimizer: Any) -> Any:
    """Return an optimizer that shares everything with this one, but for when its hooks before a step run.

    `LBFGS`, whose closure runs several passes, and what is no plain optimizer of PyTorch stay as they are.
    """
    kind = type(optimizer)
    if isinstance(optimizer, torch.optim.LBFGS) or not isinstance(optimizer, torch.optim.Optimizer):
        return optimizer
    try:
        named = type(kind.__name__, (_AfterClosure, kind), {"__module__": kind.__module__})
        twin = object.__new__(named)
        object.__setattr__(twin, "__dict__", optimizer.__dict__)
    except Exception:  # a class with its own way to make classes or objects
        return optimizer
    return twin
