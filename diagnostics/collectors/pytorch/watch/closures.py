"""Has an optimizer's step measured when its gradients are there: within the step, after the closure.

Lightning and skorch compute loss and gradients in a closure that they hand to ``optimizer.step``. A hook before
the step sees the gradients of the step before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.collectors.isolation.recording import is_recorded


class AfterClosure:
    """Runs the hooks before a step after its closure, if it is given one, and at once otherwise.

    Hooks that are added while the closure runs are run as well.

    Args:
        optimizer: of PyTorch. `LBFGS`, whose closure runs several passes, stays as it is.

    Attributes:
        optimizer: what to watch in its place: it shares everything with the optimizer, but for these hooks.
    """

    def __init__(self, optimizer: Any) -> None:
        self._hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._handle: Any = None
        self.optimizer = _twin(optimizer, self._hooks)
        if self.optimizer is not optimizer:
            self._handle = optimizer.register_step_pre_hook(self._before)

    def close(self) -> None:
        """Leave the optimizer as it was."""
        if self._handle is not None:
            self._handle.remove()

    def _before(self, optimizer: Any, arguments: Any, options: Any) -> Any:
        if is_recorded():
            return None
        by_name = "closure" in options
        closure = options["closure"] if by_name else arguments[1] if len(arguments) > 1 else None

        def measure() -> None:
            for hook in list(self._hooks.values()):
                hook(optimizer, arguments, options)

        if not callable(closure):
            measure()
            return None
        measured = _MeasuredClosure(closure, measure)
        if by_name:
            return arguments, {**options, "closure": measured}
        return (arguments[0], measured, *arguments[2:]), options


class _MeasuredClosure:
    """A closure that measures once it has run for the first time."""

    def __init__(self, closure: Callable[..., Any], measure: Callable[[], None]) -> None:
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


def _twin(optimizer: Any, hooks: OrderedDict[int, Callable[..., Any]]) -> Any:
    """Return an object with the attributes of an optimizer, whose hooks before a step go elsewhere."""
    kind = type(optimizer)
    if isinstance(optimizer, torch.optim.LBFGS) or not isinstance(optimizer, torch.optim.Optimizer):
        return optimizer

    def register_step_pre_hook(_: Any, hook: Callable[..., Any]) -> Any:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    own = {"__module__": kind.__module__, "register_step_pre_hook": register_step_pre_hook}
    try:
        twin: Any = object.__new__(type(kind.__name__, (kind,), own))
        object.__setattr__(twin, "__dict__", optimizer.__dict__)
    except Exception:  # a class with its own way to make classes or objects
        return optimizer
    return twin
