"""Patches PyTorch's functions, once for all loops, and tells each watched loop what the script calls.

A call costs the same however large the model is, but for `load_state_dict`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Mapping
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad
from torch.optim.optimizer import register_optimizer_step_pre_hook

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.isolation.recording import unless_recorded
from diagnostics.collectors.pytorch.local_tensors import local
from diagnostics.facts.calls import LoadedKeys, RestoreFacts

from .script_line import script_line
from .state_dicts import StateDicts, first_trainable

if TYPE_CHECKING:
    from .order import CallOrder

OnLoad = Callable[[nn.Module, RestoreFacts], None]


class CallPatches:
    """Patches PyTorch while anybody listens, and tells the listeners.

    Attributes:
        passes: backward passes of the script so far, while anybody listened.
        passes_at_step: those up to the latest step of any optimizer.
    """

    def __init__(self) -> None:
        self.passes = self.passes_at_step = 0
        self._listeners: list[CallOrder] = []
        self._holders: list[tuple[Callable[[Exception], None], OnLoad]] = []
        self._patches = Patches()
        self._handle: Any = None
        self._guard = FaultGuard(on_fault=self._failed)
        self._broken = False
        self._state_dicts = StateDicts(self._steps_now)
        self._unfit: IdentityMap[nn.Module, LoadedKeys] = IdentityMap()  # the latest load into each
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
                    self._state_dicts.training_ended(listener.first, listener.steps)
                self._detach()

    def _attach(self) -> None:
        if self._handle is not None:
            return
        self._broken = False
        self._handle = register_optimizer_step_pre_hook(unless_recorded(self._steps))
        self._patches.around(torch.autograd, "backward", self._counting)
        # Within `clip_grad_norm_`, whatever name the script has imported it by: there the parameters are a list.
        if hasattr(clip_grad, "_clip_grads_with_norm_"):
            self._patches.before(clip_grad, "_clip_grads_with_norm_", self._clips_norm)
        for module in (clip_grad, torch.nn.utils):
            self._patches.around(module, "clip_grad_value_", self._clipping_values)
        self._patches.after(nn.Module, "state_dict", self._takes)
        self._patches.before(nn.Module, "load_state_dict", self._loads)
        self._patches.after(nn.Module, "load_state_dict", self._loaded)
        self._patches.before(nn.Module, "zero_grad", self._zeroes_module)
        self._patches.before(torch.optim.Optimizer, "zero_grad", self._zeroes)
        self._patches.before(torch.amp.GradScaler, "step", self._scaler_steps)
        self._patches.before(torch.amp.GradScaler, "scale", self._scales)
        self._patches.before(torch.amp.GradScaler, "unscale_", self._unscales)

    def _detach(self) -> None:
        if not self._listeners and not self._holders and self._handle is not None:
            self._handle.remove()
            self._handle = None
            self._patches.undo()
            self._state_dicts, self._unfit = StateDicts(self._steps_now), IdentityMap()

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

    def _steps_now(self, parameter: nn.Parameter) -> int:
        return max((one.steps for one in self._listeners if one.owns(parameter)), default=0)

    # Calls of the script.

    def _counting(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*arguments: Any, **options: Any) -> Any:
            if not torch.compiler.is_compiling():
                self.passes += 1  # also between the graphs of a compiled step
                self._guard.attempt(self._backward)
            return plain(*arguments, **options)

        return backward

    def _backward(self) -> None:
        for listener in self._listeners:
            if listener.clips.pending:
                self._safely(listener.clips.backward_follows)

    def _steps(self, *_: Any) -> None:
        self.passes_at_step = self.passes
        for listener in self._listeners:
            if listener.clips.pending:
                self._safely(listener.clips.step_follows)

    def _zeroes(self, optimizer: Any, *_: Any, **__: Any) -> None:
        if self._listeners:
            self._safely(self._tell_zeroed, getattr(optimizer, "param_groups", ()), None)

    def _zeroes_module(self, module: nn.Module, *_: Any, **__: Any) -> None:
        if self._listeners:
            self._safely(self._tell_zeroed, None, module)

    def _tell_zeroed(self, groups: Any, module: nn.Module | None) -> None:
        first = None if module is None else first_trainable(module)
        for listener in self._listeners:
            if module is None or (first is not None and first is listener.first):
                listener.zeroes(groups)

    def _scales(self, scaler: Any, *_: Any, **__: Any) -> None:
        for listener in self._listeners:
            if scaler.is_enabled():
                self._safely(listener.clips.loss_scaled)

    def _unscales(self, *_: Any, **__: Any) -> None:
        for listener in self._listeners:
            self._safely(listener.clips.divided)

    def _scaler_steps(self, scaler: Any, optimizer: Any = None, *_: Any, **__: Any) -> None:
        self.passes_at_step = self.passes  # also where it leaves out the step
        for listener in self._listeners:
            self._safely(listener.clips.divided)
            self._safely(listener.scaler_steps, scaler, optimizer)

    def _clips_norm(
        self, parameters: Any, max_norm: Any = math.inf, total_norm: Any = None, *_: Any, **__: Any
    ) -> None:
        if self._listeners:
            self._safely(self._tell_clipped, "clip_grad_norm_", parameters, max_norm, total_norm)

    def _clipping_values(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def clip_grad_value_(parameters: Any, clip_value: Any, *arguments: Any, **options: Any) -> Any:
            if not self._listeners:
                return plain(parameters, clip_value, *arguments, **options)
            if type(parameters) is GeneratorType:
                parameters = self._overheard(parameters, clip_value)
            else:
                self._safely(self._tell_clipped, "clip_grad_value_", parameters, clip_value, None)
            return plain(parameters, clip_value, *arguments, **options)

        return clip_grad_value_

    def _overheard(self, parameters: Generator[Any, None, None], limit: Any) -> Generator[Any, None, None]:
        """Yield the same; a generator can be read only once."""
        for parameter in parameters:
            self._safely(self._tell_clipped, "clip_grad_value_", [parameter], limit, None)
            yield parameter
            break
        yield from parameters

    def _tell_clipped(self, function: str, parameters: Any, limit: Any, norm: Any) -> None:
        first = parameters if isinstance(parameters, Tensor) else None
        if isinstance(parameters, list | tuple) and parameters:
            first = parameters[0]
        if first is None or not math.isfinite(float(limit)):  # a norm that is only measured
            return
        shard = local(norm) if isinstance(norm, Tensor) else norm  # all of a DTensor would take a collective
        kept = shard.item() if isinstance(shard, Tensor) and shard.is_cpu else shard
        for listener in self._listeners:
            listener.clipped(first, function, float(limit), kept)

    def _takes(self, module: nn.Module, *arguments: Any, result: Any, **options: Any) -> None:
        if not arguments and options.get("destination") is None:  # else it is a part of another's
            self._safely(self._state_dicts.take, module, result)

    def _loads(self, module: nn.Module, state: Any = None, *_: Any, **options: Any) -> None:
        state = options.get("state_dict", state)
        if isinstance(state, dict):
            self._safely(self._tell_loaded, module, state)

    def _loaded(self, module: nn.Module, state: Any = None, *_: Any, result: Any = None, **options: Any) -> None:
        state = options.get("state_dict", state)
        if isinstance(state, Mapping) and hasattr(result, "unexpected_keys"):
            self._safely(self._note_keys, module, state, result)

    def _note_keys(self, module: nn.Module, state: Mapping[str, Any], result: Any) -> None:
        missing, unexpected = tuple(result.missing_keys), tuple(result.unexpected_keys)
        if not unexpected or not missing:  # `strict=True` raises for either
            self._unfit.pop(module, None)
            return
        fitting = len(state) - len(unexpected)
        name = type(module).__name__
        self._unfit[module] = LoadedKeys(name, fitting + len(missing), missing, unexpected, fitting, script_line())

    def hears_only(self, listener: CallOrder) -> bool:
        """Whether a listener is the only one."""
        return self._listeners == [listener]

    def loaded_into(self, listener: CallOrder) -> list[LoadedKeys]:
        """Return the loads into a listener's model, or a part of it, of whose keys some did not fit."""
        return [
            keys
            for module, keys in self._unfit.items()
            if any(listener.owns(parameter) for parameter in module.parameters())
        ]

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


calls = CallPatches()
