"""Recognises a state dict when it is loaded: of which weights it was taken, and after how many steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from torch import Tensor, nn

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import RestoredWeights

TIMES = 256  # at which a state dict was taken, remembered
MARKED = 3  # tensors of a state dict by which it is recognised: a script may leave some out


@dataclass
class _Weights:
    """The weights of one module, over all trainings of it.

    Attributes:
        past: steps of the trainings that are over.
        taken_after: after how many steps `state_dict` was called.
        kept: how many of the state dicts were still held when the next was taken, some steps later.
        latest: a tensor of the latest one.
    """

    past: int = 0
    taken_after: set[int] = field(default_factory=set)
    kept: int = 0
    latest: weakref.ref[Tensor] | None = None


@dataclass
class _Taken:
    """A state dict that was taken: of which module, after how many steps."""

    source: weakref.ref[nn.Module]
    after: int


@dataclass(frozen=True)
class Load:
    """A state dict that was put into a module.

    Attributes:
        source: the module that it was taken of, or the one that it was put into if that is not known.
        first: the first trainable parameter of the source.
        stale: the weights, if they may have changed since they were taken; None if they have not.
    """

    source: nn.Module
    first: nn.Parameter
    stale: RestoredWeights | None


class StateDicts:
    """The state dicts that a script took, without holding on to them.

    Args:
        steps_now: returns how many steps the training of a parameter has made that is not over.
    """

    def __init__(self, steps_now: Callable[[nn.Parameter], int]) -> None:
        self._steps_now = steps_now
        self._taken: IdentityMap[Tensor, _Taken] = IdentityMap()
        self._weights: IdentityMap[nn.Parameter, _Weights] = IdentityMap()  # by the first trainable parameter

    def training_ended(self, first: nn.Parameter, steps: int) -> None:
        """Record the end of a training, by the first trainable parameter of its model."""
        self._weights.setdefault(first, _Weights()).past += steps

    def take(self, module: nn.Module, state: Any) -> None:
        """Record what `state_dict` of a module returned."""
        first = first_trainable(module)
        if not isinstance(state, dict) or not state or first is None:
            return
        weights = self._weights.setdefault(first, _Weights())
        after = self._steps_of(first)
        if weights.latest is not None and weights.latest() is not None and after not in weights.taken_after:
            weights.kept += 1
        if len(weights.taken_after) < TIMES:
            weights.taken_after.add(after)
        taken = _Taken(weakref.ref(module), after)
        for value in list(state.values()) if len(state) <= MARKED else _some(state):
            if type(value) is Tensor or type(value) is nn.Parameter:
                self._taken[value] = taken
                weights.latest = weakref.ref(value)

    def load(self, module: nn.Module, state: Mapping[str, Any]) -> Load | None:
        """Describe the load of a state dict into a module; None if none of its parameters is trainable."""
        tensors = [value for value in state.values() if type(value) is Tensor or type(value) is nn.Parameter]
        taken = next((self._taken[value] for value in tensors if value in self._taken), None)
        source = module if taken is None else taken.source() or module
        first = first_trainable(source)
        if first is None:
            return None
        stale = None if taken is None else self._stale(module, source, first, taken, tensors)
        return Load(source, first, stale)

    def _steps_of(self, parameter: nn.Parameter) -> int:
        """Return how many steps were made with a parameter."""
        past = self._weights[parameter].past if parameter in self._weights else 0
        return past + self._steps_now(parameter)

    def _stale(
        self, module: nn.Module, source: nn.Module, first: nn.Parameter, taken: _Taken, tensors: list[Tensor]
    ) -> RestoredWeights | None:
        loaded = {value.data_ptr() for value in tensors if value.numel()}
        by_itself, weights = _shares(module, loaded), self._weights.get(first, _Weights())
        steps = self._steps_of(first)
        newest = taken.after >= max(weights.taken_after, default=0)  # an older one stands for the latest weights
        if not by_itself and not (newest and _shares(source, loaded)):
            return None
        if steps <= taken.after and not (by_itself and weights.kept):
            return None
        return RestoredWeights(
            taken.after,
            steps,
            by_itself,
            len(weights.taken_after),
            len(list(module.parameters())),
            script_line(),
        )


def first_trainable(module: nn.Module) -> nn.Parameter | None:
    """Return the first trainable parameter of a module; None if it has none."""
    return next((parameter for parameter in module.parameters() if parameter.requires_grad), None)


def _some(state: Mapping[str, Any]) -> list[Any]:
    """Return the first, a middle and the last value of a state dict."""
    values = state.values()
    middle = next(islice(values, len(state) // 2, None))
    return [next(iter(values)), middle, next(reversed(values))]  # type: ignore[call-overload]


def _shares(module: nn.Module, memory: set[int]) -> bool:
    """Whether all parameters of a module lie at these addresses."""
    own = {parameter.data_ptr() for parameter in module.parameters() if parameter.numel()}
    return bool(own) and own <= memory
