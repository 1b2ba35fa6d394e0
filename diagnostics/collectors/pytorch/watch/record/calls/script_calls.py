"""Tells each watched loop what the script calls, once for all loops.

A call costs the same however large the model is, but for `load_state_dict`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.local_tensors import local
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import COLLECTED, LoadedKeys, RestoreFacts
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

if TYPE_CHECKING:
    from .order import CallOrder
import weakref
from dataclasses import dataclass, field

from diagnostics.facts.calls import RestoredWeights

OnLoad = Callable[[nn.Module, RestoreFacts], None]
MAX_SAMPLED = 8  # parameters that a load left as they were, and of each:
NUMBERS = 8
MAX_SAVED = 4096  # steps after which the weights were taken
Samples = list[tuple[nn.Parameter, Tensor]]
TIMES = 256  # at which a state dict was taken, remembered
MARKED = 3  # tensors of a state dict by which it is recognised: a script may leave some out


class ScriptCalls:
    """Hears what the script calls while anybody listens, and tells the listeners.

    Attributes:
        passes_at_step: backward passes of the script up to the latest step of any optimizer.
    """

    def __init__(self) -> None:
        self.passes_at_step = 0
        self._listeners: list[CallOrder] = []
        self._holders: list[tuple[Callable[[Exception], None], OnLoad]] = []
        self._unsubscribe: Unsubscribe | None = None
        self._guard = FaultGuard(on_fault=self._failed)
        self._broken = False
        self._state_dicts = StateDicts(self._steps_now)
        # The latest load into each, and numbers of parameters that it left as they were.
        self._unfit: IdentityMap[nn.Module, tuple[LoadedKeys, Samples]] = IdentityMap()
        self._collected: IdentityMap[nn.Module, None] = IdentityMap()  # was reported outside of its training
        self._lock = threading.Lock()

    @property
    def passes(self) -> int:
        """Backward passes of the script so far, while anybody listened."""
        return taps.backward.passes

    def hold(
        self, on_fault: Callable[[Exception], None], on_load: OnLoad = lambda model, facts: None
    ) -> Callable[[], None]:
        """Hear calls also while nobody listens; return a function that ends it.

        Args:
            on_fault: called with a fault of this library; then nothing is heard any more.
            on_load: called with a module whose training is over, and with what became of its weights.
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
                    self._state_dicts.training_ended(listener.first, listener.steps)
                self._detach()

    def _attach(self) -> None:
        if self._unsubscribe is not None:
            return
        self._broken = False
        self._unsubscribe = subscribe(
            self._safely,
            (taps.backward.before, self._backward),
            (taps.optimizer_step.before, self._steps),
            (taps.clip_grads_with_norm.before, self._clips_norm),
            (taps.clip_grad_value.before, self._clips_values),
            (taps.module_state_dict.after, self._takes),
            (taps.module_load_state_dict.before, self._loads),
            (taps.module_load_state_dict.after, self._loaded),
            (taps.module_zero_grad.before, self._zeroes_module),
            (taps.optimizer_zero_grad.before, self._zeroes),
            (taps.scaler_step.before, self._scaler_steps),
            (taps.scaler_scale.before, self._scales),
            (taps.scaler_unscale.before, self._unscales),
        )

    def _detach(self) -> None:
        if not self._listeners and not self._holders and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
            self._state_dicts, self._unfit = StateDicts(self._steps_now), IdentityMap()

    def _safely(self, work: Callable[..., None], /, *arguments: Any, **options: Any) -> None:
        if not self._broken:
            self._guard.attempt(work, *arguments, **options)

    def _failed(self, fault: Exception) -> None:
        self._broken = True
        for told in [
            *(on_fault for on_fault, _ in self._holders),
            *(listener.on_fault for listener in self._listeners),
        ]:
            told(fault)

    def _steps_now(self, parameter: nn.Parameter) -> int:
        return max((one.steps for one in self._listeners if one.owns(parameter)), default=0)

    # Calls of the script. Each of these is called through `_safely`.

    def _backward(self, *_: Any, **__: Any) -> None:
        for listener in self._listeners:
            if listener.clips.pending:
                listener.clips.backward_follows()

    def _steps(self, *_: Any) -> None:
        self.passes_at_step = self.passes
        for listener in self._listeners:
            if listener.clips.pending:
                listener.clips.step_follows()

    def _zeroes(self, optimizer: Any, *_: Any, **__: Any) -> None:
        for listener in self._listeners:
            listener.zeroes(getattr(optimizer, "param_groups", ()))

    def _zeroes_module(self, module: nn.Module, *_: Any, **__: Any) -> None:
        first = first_trainable(module) if self._listeners else None
        for listener in self._listeners:
            if first is not None and first is listener.first:
                listener.zeroes(None)

    def _scales(self, scaler: Any, *_: Any, **__: Any) -> None:
        for listener in self._listeners:
            if scaler.is_enabled():
                listener.scaled.loss()

    def _unscales(self, *_: Any, **__: Any) -> None:
        for listener in self._listeners:
            listener.scaled.divided()

    def _scaler_steps(self, scaler: Any, optimizer: Any = None, *_: Any, **__: Any) -> None:
        self.passes_at_step = self.passes  # also where it leaves out the step
        for listener in self._listeners:
            listener.scaled.divided()
            listener.scaler_steps(scaler, optimizer)

    def _clips_norm(
        self, parameters: Any, max_norm: Any = math.inf, total_norm: Any = None, *_: Any, **__: Any
    ) -> None:
        self._tell_clipped("clip_grad_norm_", parameters, max_norm, total_norm)

    def _clips_values(self, parameters: Any, limit: Any) -> None:
        self._tell_clipped("clip_grad_value_", parameters, limit, None)

    def _tell_clipped(self, function: str, parameters: Any, limit: Any, norm: Any) -> None:
        if not self._listeners:
            return
        first = parameters if isinstance(parameters, Tensor) else None
        if isinstance(parameters, list | tuple) and parameters:
            first = parameters[0]
        if first is None or not math.isfinite(float(limit)):  # a norm that is only measured
            return
        shard = local(norm) if isinstance(norm, Tensor) else norm  # all of a DTensor would take a collective
        kept = shard.item() if isinstance(shard, Tensor) and shard.is_cpu else shard
        for listener in self._listeners:
            listener.clipped(first, function, float(limit), kept)

    def _takes(self, result: Any, module: nn.Module, *arguments: Any, **options: Any) -> None:
        if not arguments and options.get("destination") is None:  # else it is a part of another's
            held = self._state_dicts.take(module, result)
            first = first_trainable(module)
            owners = [one for one in self._listeners if first is not None and one.owns(first)]
            for listener in owners:
                listener.holds(held)
                if len(listener.saved_after) < MAX_SAVED:
                    listener.saved_after.add(max(0, listener.steps - 1))
            if held == COLLECTED and not owners and module not in self._collected:
                self._collected[module] = None
                for _, on_load in self._holders:
                    on_load(module, RestoreFacts(0, (), 0, held, script_line()))

    def _loads(self, module: nn.Module, state: Any = None, *_: Any, **options: Any) -> None:
        state = options.get("state_dict", state)
        if isinstance(state, dict):
            self._tell_loaded(module, state)

    def _loaded(self, result: Any, module: nn.Module, state: Any = None, *_: Any, **options: Any) -> None:
        state = options.get("state_dict", state)
        if isinstance(state, Mapping) and hasattr(result, "unexpected_keys"):
            self._note_keys(module, state, result)

    def _note_keys(self, module: nn.Module, state: Mapping[str, Any], result: Any) -> None:
        missing, unexpected = tuple(result.missing_keys), tuple(result.unexpected_keys)
        if not unexpected or not missing:  # `strict=True` raises for either
            self._unfit.pop(module, None)
            return
        fitting = len(state) - len(unexpected)
        name = type(module).__name__
        loaded = LoadedKeys(name, fitting + len(missing), missing, unexpected, fitting, script_line())
        self._unfit[module] = loaded, _samples(module, set(missing))

    def hears_only(self, listener: CallOrder) -> bool:
        """Whether a listener is the only one."""
        return self._listeners == [listener]

    def loaded_into(self, listener: CallOrder) -> list[LoadedKeys]:
        """Return the loads into a listener's model, or a part of it, of whose keys some did not fit."""
        return [
            keys
            for module, (keys, _) in self._unfit.items()
            if any(listener.owns(parameter) for parameter in module.parameters())
        ]

    def left_as_it_was(self, module: nn.Module) -> list[LoadedKeys]:
        """Return the loads into a module, or a part of it, of whose keys some did not fit.

        Those are left out whose missing weights the script has set in another way since.
        """
        if not len(self._unfit):
            return []
        parts = (self._unfit[part] for part in module.modules() if part in self._unfit)
        return [keys for keys, samples in parts if samples and all(map(_is_unchanged, samples))]

    def _tell_loaded(self, module: nn.Module, state: Mapping[str, Any]) -> None:
        load = self._state_dicts.load(module, state)
        if load is None:
            return
        owners = [listener for listener in self._listeners if listener.owns(load.first)]
        for listener in owners:
            listener.loads(load.stale)
        if load.stale is not None and not owners:
            for _, on_load in self._holders:
                on_load(load.source, RestoreFacts(1, (load.stale,), 1))


def _samples(module: nn.Module, names: set[str]) -> Samples:
    """Copy the first numbers of parameters with these names that can be read."""
    plain = (
        parameter
        for name, parameter in module.named_parameters()
        if name in names and type(parameter) is nn.Parameter and not parameter.is_meta and parameter.numel()
    )
    return [(parameter, _numbers(parameter)) for parameter in islice(plain, MAX_SAMPLED)]


def _numbers(parameter: nn.Parameter) -> Tensor:
    return parameter.detach().reshape(-1)[:NUMBERS].clone()


def _is_unchanged(sample: tuple[nn.Parameter, Tensor]) -> bool:
    parameter, before = sample
    return bool(torch.equal(_numbers(parameter).to(before), before))


@dataclass
class _Weights:
    """The weights of one module, over all trainings of it.

    Attributes:
        past: steps of the trainings that are over.
        taken_after: after how many steps `state_dict` was called.
        kept: how many of the state dicts were still held when the next was taken, some steps later.
        latest: a tensor of the latest one.
        held: a tensor of each state dict since the script let go of one, by the steps after which it was taken.
    """

    past: int = 0
    taken_after: set[int] = field(default_factory=set)
    kept: int = 0
    latest: weakref.ref[Tensor] | None = None
    held: dict[int, weakref.ref[Tensor]] = field(default_factory=dict)


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

    def take(self, module: nn.Module, state: Any) -> int:
        """Record what `state_dict` of a module returned; return how many of different steps are held."""
        first = first_trainable(module)
        if not isinstance(state, dict) or not state or first is None:
            return 0
        weights = self._weights.setdefault(first, _Weights())
        after = self._steps_of(first)
        if weights.latest is not None and weights.latest() is not None and after not in weights.taken_after:
            weights.kept += 1
        if len(weights.taken_after) < TIMES:
            weights.taken_after.add(after)
        taken, memory = _Taken(weakref.ref(module), after), _memory_of(module)
        if not all(_is_in(kept(), memory) for steps, kept in weights.held.items() if steps != after):
            weights.held.clear()  # a variable of the script has got another: it keeps no list of them
        for value in list(state.values()) if len(state) <= MARKED else _some(state):
            if type(value) is Tensor or type(value) is nn.Parameter:
                self._taken[value] = taken
                weights.latest = weakref.ref(value)
                known = weights.held.get(after, lambda: None)() is not None or len(weights.held) >= TIMES
                if type(value) is Tensor and _is_in(value, memory) and not known:
                    weights.held[after] = weights.latest
        return len(weights.held)

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


def _memory_of(module: nn.Module) -> set[int]:
    """Return the addresses of the trainable parameters of a module."""
    plain = (one for one in module.parameters() if type(one) is nn.Parameter and one.requires_grad)
    return {one.data_ptr() for one in plain if one.numel() and not one.is_meta}


def _is_in(tensor: Tensor | None, memory: set[int]) -> bool:
    return tensor is not None and not tensor.is_meta and tensor.data_ptr() in memory


def _some(state: Mapping[str, Any]) -> list[Any]:
    """Return the first, a middle and the last value of a state dict."""
    values = state.values()
    middle = next(islice(values, len(state) // 2, None))
    return [next(iter(values)), middle, next(reversed(values))]  # type: ignore[call-overload]


def _shares(module: nn.Module, memory: set[int]) -> bool:
    """Whether all parameters of a module lie at these addresses."""
    own = {parameter.data_ptr() for parameter in module.parameters() if parameter.numel()}
    return bool(own) and own <= memory


calls = ScriptCalls()
