"""Hears the calls of a loop whose order matters: backward, clipping, `state_dict` and `load_state_dict`.

PyTorch's functions are patched once for all loops, while anybody listens. A call costs the same however large the
model is, but for `load_state_dict`.
"""

from __future__ import annotations

import math
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import GeneratorType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad
from torch.optim.optimizer import register_optimizer_step_pre_hook

from diagnostics.collectors.crash.frames import is_yours, shorten
from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.facts.calls import ClipFacts, RestoredWeights, RestoreFacts, ScaledClipFacts, StepOrderFacts
from diagnostics.facts.where import Where

from .norms import to_host
from .scaled_clips import ScaledClips

NORMS = 256  # of useless calls, remembered
STALE = 16  # loads of stale weights, remembered
MARKED = 3  # tensors of a state dict by which it is recognised: a script may leave some out
FEW = 16  # numbers, by which is seen whether the weights moved at all
FRAMES = 64  # of a stack that are searched for the script's own

OnLoad = Callable[[nn.Module, RestoreFacts], None]


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


class CallOrder:
    """What one watched loop does, in which order.

    Attributes:
        steps: of the loop.
        first: the first of the parameters.

    Args:
        parameters: of the model, trainable.
        held: by optimizer, the parameters of the model that it holds, with their numbers.
        groups: by optimizer, its parameter groups.
        on_fault: called with a fault of this library; then nothing is heard any more.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        held: list[list[tuple[int, nn.Parameter]]],
        groups: list[Any],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._owned = {id(parameter) for parameter in parameters.values()}
        self.first = next(iter(parameters.values()), None)
        self._optimizer_of = {id(p): number for number, pairs in enumerate(held) for _, p in pairs}
        self.on_fault = on_fault
        self.steps = 0
        # By optimizer: how many backward passes there had been at its last step.
        self._passes = [_calls.passes for _ in held]
        self._cleared = [-1 for _ in held]  # the same at its last `zero_grad`
        self._groups = groups
        self._began = self._asked_at = _calls.passes
        self._zeroed = self._late_zeros = self._without_backward = self._own_steps = 0
        self._sample = None if self.first is None else _few(self.first)
        self._moved = True
        self._passes_end: int | None = None
        self._function, self._limit = "", math.nan
        self._in_time = self._useless = self._empty = 0
        self._norms: deque[float | Tensor] = deque(maxlen=NORMS)
        self._read: list[float] = []
        self._clipped_at: Where | None = None
        self._scaled = ScaledClips()
        self._loads = self._num_stale = 0
        self._stale: list[RestoredWeights] = []
        _calls.join(self)

    def close(self) -> None:
        """Listen no more; the facts stay."""
        self._passes_end = _calls.passes - self._began
        _calls.leave(self)

    def stepped(self, number: int, steps: int) -> None:
        """Record a step of an optimizer, after it.

        Args:
            number: of the optimizer.
            steps: of the whole loop.
        """
        passes = _calls.passes
        if number < len(self._passes):
            self._own_steps += 1
            if passes == self._passes[number]:
                self._without_backward += 1
            elif passes == self._cleared[number]:
                self._late_zeros += 1
            self._passes[number] = passes
        self.steps = steps

    def in_new_backward(self) -> bool:
        """Whether `backward` was called since this was last asked; `torch.autograd.grad` adds up nothing."""
        before, self._asked_at = self._asked_at, _calls.passes
        return before != _calls.passes

    def zeroes(self, groups: Any) -> None:
        """Record a `zero_grad` of an optimizer, or of the whole model where no groups are given."""
        for number, own in enumerate(self._groups):
            if groups is None or own is groups:
                self._cleared[number] = _calls.passes
                self._zeroed += groups is not None

    def owns(self, parameter: Any) -> bool:
        """Whether a parameter is one of the model's."""
        return id(parameter) in self._owned

    def clips(self, parameter: Any, function: str, limit: float, norm: float | Tensor | None) -> bool:
        """Record a call that clips to a limit; return whether it comes too late, or too early."""
        number = self._optimizer_of.get(id(parameter))
        if number is None:
            return False
        if _calls.passes > self._passes[number]:
            if not self._in_time:
                self._scaled.where = _own_line()
            self._in_time += 1
            self._scaled.clipped(number, function, limit, norm)
            return False
        if self._clipped_at is None:
            self._clipped_at = _own_line()
        return True

    def scaler_steps(self, scaler: Any, optimizer: Any) -> None:
        """Record that a loss scaler is about to make a step with an optimizer."""
        groups = getattr(optimizer, "param_groups", None)
        for number, own in enumerate(self._groups):
            if own is groups:
                self._scaled.steps(number, scaler, optimizer)

    def used(self) -> None:
        """Record that gradients were clipped before a step after all."""
        self._in_time += 1

    def wasted(self, function: str, limit: float, norm: float | Tensor | None, empty: bool) -> None:
        """Record a call that clipped for nothing."""
        self._function, self._limit = function, limit
        self._useless += 1
        self._empty += empty
        if norm is not None:
            self._norms.append(norm)

    def read(self) -> None:
        """Read the norms from the device."""
        if self.first is not None and self._sample is not None:
            self._moved = not torch.equal(self._sample, _few(self.first))
        norms = list(self._norms)
        host = to_host({place: norm for place, norm in enumerate(norms) if isinstance(norm, Tensor)})
        self._read = [
            float(host[place].mean()) if isinstance(norm, Tensor) else norm for place, norm in enumerate(norms)
        ]

    def loads(self, stale: RestoredWeights | None) -> None:
        """Record a load that has to do with the model's weights."""
        self._loads += 1
        if stale is not None:
            self._num_stale += 1
            if len(self._stale) < STALE:
                self._stale.append(stale)

    def facts(self) -> tuple[ClipFacts | RestoreFacts | ScaledClipFacts | StepOrderFacts, ...]:
        """Return what was heard, with the norms that were read."""
        found: list[ClipFacts | RestoreFacts | ScaledClipFacts | StepOrderFacts] = []
        if self._groups:
            passes, moved = (
                _calls.passes - self._began if self._passes_end is None else self._passes_end,
                self._moved,
            )
            steps = self._own_steps, self._late_zeros, self._without_backward
            found.append(StepOrderFacts(*steps, passes, self._zeroed, moved))
        if self._in_time or self._useless:
            norms = np.array(self._read)
            cleared = self._empty == self._useless > 0 or (len(norms) > 0 and not norms.any())
            counts = self._in_time, self._useless
            found.append(ClipFacts(self._function, self._limit, *counts, norms, cleared, self._clipped_at))
        if self._loads:
            found.append(RestoreFacts(self._loads, tuple(self._stale), self._num_stale))
        if (scaled := self._scaled.facts()) is not None:
            found.append(scaled)
        return tuple(found)


class _Calls:
    """Patches PyTorch while anybody listens, and tells the listeners.

    Attributes:
        passes: backward passes so far.
    """

    def __init__(self) -> None:
        self.passes = 0
        self._listeners: list[CallOrder] = []
        self._holders: list[tuple[Callable[[Exception], None], OnLoad]] = []
        self._patches = Patches()
        self._handle: Any = None
        self._guard = FaultGuard(on_fault=self._failed)
        self._broken = False
        # Calls that clipped since a step, with no backward pass since either.
        self._pending: list[tuple[CallOrder, str, float, float | Tensor | None, bool]] = []
        self._taken: IdentityMap[Tensor, _Taken] = IdentityMap()
        self._weights: IdentityMap[nn.Parameter, _Weights] = IdentityMap()  # by the first trainable parameter
        self._lock = threading.Lock()

    def hold(
        self, on_fault: Callable[[Exception], None], on_load: OnLoad = lambda model, facts: None
    ) -> Callable[[], None]:
        """Hear calls also while nobody listens; return a function that ends it.

        Args:
            on_fault: called with a fault of this library; then nothing is heard any more.
            on_load: called with a module whose training is over, and with a load of its weights.
        """
        holder = on_fault, on_load
        with self._lock:
            self._holders.append(holder)
            self._attach()

        def release() -> None:
            with self._lock:
                self._holders.remove(holder)
                self._detach()

        return release

    def join(self, listener: CallOrder) -> None:
        """Tell a listener from now on."""
        with self._lock:
            self._listeners.append(listener)
            self._attach()

    def leave(self, listener: CallOrder) -> None:
        """Tell it no more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
                if listener.first is not None and self._holders:
                    self._weights.setdefault(listener.first, _Weights()).past += listener.steps
                self._pending = [call for call in self._pending if call[0] is not listener]
                self._detach()

    def _attach(self) -> None:
        if self._handle is not None:
            return
        self._broken = False
        self._handle = register_optimizer_step_pre_hook(lambda *_: self._safely(self._steps))
        self._patches.before(torch.autograd, "backward", self._backward)
        # Within `clip_grad_norm_`, whatever name the script has imported it by: there the parameters are a list.
        if hasattr(clip_grad, "_clip_grads_with_norm_"):
            self._patches.before(clip_grad, "_clip_grads_with_norm_", self._clips_norm)
        for module in (clip_grad, torch.nn.utils):
            self._patches.around(module, "clip_grad_value_", self._clipping_values)
        self._patches.after(nn.Module, "state_dict", self._takes)
        self._patches.before(nn.Module, "load_state_dict", self._loads)
        self._patches.before(nn.Module, "zero_grad", self._zeroes_module)
        self._patches.before(torch.optim.Optimizer, "zero_grad", self._zeroes)
        self._patches.before(torch.amp.GradScaler, "step", self._scaler_steps)

    def _detach(self) -> None:
        if not self._listeners and not self._holders and self._handle is not None:
            self._handle.remove()
            self._handle = None
            self._patches.undo()
            self._pending.clear()
            self._taken, self._weights = IdentityMap(), IdentityMap()

    def _safely(self, work: Callable[..., None], *arguments: Any) -> None:
        if self._handle is not None and not self._broken and not is_own_run():
            self._guard.attempt(work, *arguments)

    def _failed(self, fault: Exception) -> None:
        self._broken = True
        for told in [
            *(on_fault for on_fault, _ in self._holders),
            *(listener.on_fault for listener in self._listeners),
        ]:
            told(fault)

    # Calls of the script.

    def _backward(self, *_arguments: Any, **_options: Any) -> None:
        self.passes += 1
        if self._pending:
            self._safely(self._confirm)

    def _confirm(self) -> None:
        pending, self._pending = self._pending, []
        for listener, function, limit, norm, empty in pending:
            listener.wasted(function, limit, norm, empty)

    def _steps(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            for listener, *_ in pending:
                listener.used()

    def _zeroes(self, optimizer: Any, *_: Any, **__: Any) -> None:
        if self._listeners:
            self._safely(self._tell_zeroed, getattr(optimizer, "param_groups", ()), None)

    def _zeroes_module(self, module: nn.Module, *_: Any, **__: Any) -> None:
        if self._listeners:
            self._safely(self._tell_zeroed, None, module)

    def _tell_zeroed(self, groups: Any, module: nn.Module | None) -> None:
        first = None if module is None else _first(module)
        for listener in self._listeners:
            if module is None or (first is not None and first is listener.first):
                listener.zeroes(groups)

    def _scaler_steps(self, scaler: Any, optimizer: Any = None, *_: Any, **__: Any) -> None:
        for listener in self._listeners:
            self._safely(listener.scaler_steps, scaler, optimizer)

    def _clips_norm(
        self, parameters: Any, max_norm: Any = math.inf, total_norm: Any = None, *_: Any, **__: Any
    ) -> None:
        if self._listeners:
            self._safely(self._clips, "clip_grad_norm_", parameters, max_norm, total_norm)

    def _clipping_values(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def clip_grad_value_(parameters: Any, clip_value: Any, *arguments: Any, **options: Any) -> Any:
            if not self._listeners:
                return plain(parameters, clip_value, *arguments, **options)
            if type(parameters) is GeneratorType:
                parameters = self._overheard(parameters, clip_value)
            else:
                self._safely(self._clips, "clip_grad_value_", parameters, clip_value, None)
            return plain(parameters, clip_value, *arguments, **options)

        return clip_grad_value_

    def _overheard(self, parameters: Generator[Any, None, None], limit: Any) -> Generator[Any, None, None]:
        """Yield the same; a generator can be read only once."""
        for parameter in parameters:
            self._safely(self._clips, "clip_grad_value_", [parameter], limit, None)
            yield parameter
            break
        yield from parameters

    def _clips(self, function: str, parameters: Any, limit: Any, norm: Any) -> None:
        first = parameters if isinstance(parameters, Tensor) else None
        if isinstance(parameters, list | tuple) and parameters:
            first = parameters[0]
        if first is None or not math.isfinite(float(limit)):  # a norm that is only measured
            return
        kept = norm.item() if isinstance(norm, Tensor) and norm.is_cpu else norm
        for listener in self._listeners:
            if listener.clips(first, function, float(limit), kept):
                self._pending.append((listener, function, float(limit), kept, first.grad is None))

    def _takes(self, module: nn.Module, *arguments: Any, result: Any, **options: Any) -> None:
        if not arguments and options.get("destination") is None:  # else it is a part of another's
            self._safely(self._take, module, result)

    def _take(self, module: nn.Module, state: Any) -> None:
        first = _first(module)
        if not isinstance(state, dict) or not state or first is None:
            return
        weights = self._weights.setdefault(first, _Weights())
        after = self._steps_of(first)
        if weights.latest is not None and weights.latest() is not None and after not in weights.taken_after:
            weights.kept += 1
        if len(weights.taken_after) < NORMS:
            weights.taken_after.add(after)
        taken = _Taken(weakref.ref(module), after)
        for value in list(state.values()) if len(state) <= MARKED else _some(state):
            if type(value) is Tensor or type(value) is nn.Parameter:
                self._taken[value] = taken
                weights.latest = weakref.ref(value)

    def _steps_of(self, parameter: nn.Parameter) -> int:
        """Return how many steps were made with a parameter."""
        past = self._weights[parameter].past if parameter in self._weights else 0
        return past + max((one.steps for one in self._listeners if one.owns(parameter)), default=0)

    def _loads(self, module: nn.Module, state: Any = None, *_: Any, **options: Any) -> None:
        state = options.get("state_dict", state)
        if isinstance(state, dict):
            self._safely(self._load, module, state)

    def _load(self, module: nn.Module, state: Mapping[str, Any]) -> None:
        tensors = [value for value in state.values() if type(value) is Tensor or type(value) is nn.Parameter]
        taken = next((self._taken[value] for value in tensors if value in self._taken), None)
        source = module if taken is None else taken.source() or module
        first = _first(source)
        if first is None:
            return
        stale = None if taken is None else self._stale(module, source, first, taken, tensors)
        told = False
        for listener in self._listeners:
            if listener.owns(first):
                listener.loads(stale)
                told = True
        if stale is not None and not told:
            for _, on_load in self._holders:
                on_load(source, RestoreFacts(1, (stale,), 1))

    def _stale(
        self, module: nn.Module, source: nn.Module, first: nn.Parameter, taken: _Taken, tensors: list[Tensor]
    ) -> RestoredWeights | None:
        """Describe a load of weights that may have changed since they were taken; None if they have not."""
        loaded = {value.data_ptr() for value in tensors if value.numel()}
        by_itself, weights = _shares(module, loaded), self._weights.get(first, _Weights())
        steps = self._steps_of(first)
        newest = taken.after >= max(weights.taken_after, default=0)  # an older one stands for the latest weights
        if not by_itself and not (newest and _shares(source, loaded)):
            return None
        if steps <= taken.after and not (by_itself and weights.kept):
            return None
        return RestoredWeights(
            taken.after, steps, by_itself, len(weights.taken_after), len(list(module.parameters())), _own_line()
        )


def _some(state: Mapping[str, Any]) -> list[Any]:
    """Return the first, a middle and the last value of a state dict."""
    values = state.values()
    middle = next(islice(values, len(state) // 2, None))
    return [next(iter(values)), middle, next(reversed(values))]  # type: ignore[call-overload]


def _shares(module: nn.Module, memory: set[int]) -> bool:
    """Whether all parameters of a module lie at these addresses."""
    own = {parameter.data_ptr() for parameter in module.parameters() if parameter.numel()}
    return bool(own) and own <= memory


def _few(parameter: nn.Parameter) -> Tensor:
    """Copy the first numbers of a parameter."""
    return parameter.detach().reshape(-1)[:FEW].clone()


def _first(module: nn.Module) -> nn.Parameter | None:
    """Return the first trainable parameter of a module."""
    return next((parameter for parameter in module.parameters() if parameter.requires_grad), None)


def _own_line() -> Where | None:
    """Return the innermost line of the script on the stack."""
    frame: Any = sys._getframe(1)
    for _ in range(FRAMES):
        if frame is None:
            return None
        if is_yours(frame.f_code.co_filename):
            return Where(shorten(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def passes() -> int:
    """Return the backward passes of the script so far, while anybody listened."""
    return _calls.passes


_calls = _Calls()
hold = _calls.hold
