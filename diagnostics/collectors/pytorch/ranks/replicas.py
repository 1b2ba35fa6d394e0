"""Keeps what one rank's DistributedDataParallel was called with, for a comparison with the other ranks.

No collective is made, and nothing is read but at few forward passes: the first one after optimizer step 0, 1, 2,
4, 8 and so on. Steps are counted, because one rank may evaluate by itself. A sample holds `VALUES` values of
`PARAMETERS` parameters, a checksum of the batch, and one of each random generator that the script draws from until
its next forward pass.
"""

from __future__ import annotations

import random
import sys
import weakref
import zlib
from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.ranks.replicas import Sample, WrapperFacts
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

PARAMETERS, VALUES = 32, 16
ROWS = 4_096  # values of a tensor that the checksum covers
TENSORS = 8  # of the inputs of one call
FEWEST_ROWS = 8  # values, below which two ranks can have the same by chance
LOCAL_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class _Wrapped:
    """A model in its wrapper."""

    def __init__(self, wrapper: Any, module: nn.Module) -> None:
        self.wrapper = weakref.ref(wrapper)
        self.name = type(module).__name__
        self.world = int(wrapper.process_group.size())
        self.known = {id(one) for one in module.parameters()}
        self.added: tuple[str, ...] = ()
        self.passes = self.bare = self.steps = 0
        self.computed = False  # a forward pass, since the last step
        self.where: Any = None
        self.comparable = True
        self.samples: dict[int, Sample] = {}
        self.rows: int | None = None
        self.local_norms: tuple[str, ...] = ()
        self.sampled = False  # the forward pass that runs
        self.drawn: tuple[int, dict[str, int]] | None = None  # states at the end of the sample after so many steps


class ReplicaNotes:
    """The models that the script wraps in DistributedDataParallel.

    Attributes:
        fault: of this library, after which nothing more is kept; None without any.
    """

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self._guard = FaultGuard(on_fault=self._failed)
        self._all: list[_Wrapped] = []
        self._inside: IdentityMap[nn.Module, _Wrapped] = IdentityMap()
        self._of_wrapper: IdentityMap[Any, _Wrapped] = IdentityMap()

    def attach(self) -> Unsubscribe:
        """Take notes of the models that are added, from now on; return what ends it."""
        return subscribe(
            self._safely,
            (taps.replica_forward.before, self._forward),
            (taps.replica_forward.after, self._returned),
            (taps.optimizer_step.after, self._stepped),
        )

    def _failed(self, fault: Exception) -> None:
        self.fault = fault

    def _safely(self, work: Callable[..., None], /, *arguments: Any, **options: Any) -> None:
        if self.fault is None:
            self._guard.attempt(work, *arguments, **options)

    def add(self, wrapper: Any) -> None:
        """Take notes of a model, unless only some of the ranks share it."""
        if self.fault is not None:
            return
        if wrapper.process_group.size() != torch.distributed.get_world_size():
            return  # ranks of another group may have another model
        wrapped = _Wrapped(wrapper, wrapper.module)
        self._all.append(wrapped)
        self._inside[wrapper.module] = self._of_wrapper[wrapper] = wrapped

    def _forward(self, wrapper: Any, /, *arguments: Any, **options: Any) -> None:
        """Take note of a forward pass with gradients."""
        wrapped = self._of_wrapper.get(wrapper)
        if wrapped is None or not torch.is_grad_enabled():
            return
        wrapped.passes += 1
        wrapped.computed = True
        if wrapper._join_config.enable:  # for uneven inputs: a rank may soon be an epoch ahead
            wrapped.comparable = False
        if wrapped.drawn is not None:
            self._compare_drawn(wrapped)
        if is_sampled(wrapped.steps) and wrapped.steps not in wrapped.samples and wrapped.comparable:
            self._keep(wrapped, wrapper, (*arguments, *options.values()))

    def _returned(self, _result: Any, wrapper: Any, /, *_arguments: Any, **_options: Any) -> None:
        wrapped = self._of_wrapper.get(wrapper)
        if wrapped is not None and wrapped.sampled:
            wrapped.sampled, wrapped.drawn = False, (wrapped.steps, generator_states())

    @staticmethod
    def _compare_drawn(wrapped: _Wrapped) -> None:
        """Add to the last sample which generators were drawn from since that forward pass."""
        assert wrapped.drawn is not None
        (step, before), wrapped.drawn = wrapped.drawn, None
        now = generator_states()
        drawn = {name: (state, now[name]) for name, state in before.items() if now.get(name, state) != state}
        wrapped.samples[step] = replace(wrapped.samples[step], drawn=drawn)

    def _stepped(self, optimizer: Optimizer, *_: Any) -> None:
        for wrapped in self._all:
            wrapper = wrapped.wrapper()
            if wrapper is None:
                continue
            held = {id(one) for group in optimizer.param_groups for one in group["params"]}
            first = next((one for one in wrapper.module.parameters() if one.requires_grad), None)
            if id(first) not in held or not wrapped.computed:  # the second: an optimizer within another one
                continue
            wrapped.steps, wrapped.computed = wrapped.steps + 1, False
            if is_sampled(wrapped.steps):  # of new parameters those that are trained: others do no harm
                added = (
                    name
                    for name, one in wrapper.module.named_parameters()
                    if id(one) in held and id(one) not in wrapped.known and one.grad is not None
                )
                wrapped.added = tuple(dict.fromkeys((*wrapped.added, *added)))

    def called(self, module: nn.Module) -> None:
        """Take note of a forward pass with gradients that is no part of another module's."""
        wrapped = self._inside.get(module) if self._all else None
        if wrapped is not None and wrapped.wrapper() is not None:
            wrapped.bare += 1
            wrapped.computed = True
            wrapped.where = wrapped.where or script_line()

    def _keep(self, wrapped: _Wrapped, wrapper: Any, inputs: tuple[Any, ...]) -> None:
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            return  # to read a value would end the capture
        ignored = set(getattr(wrapper, "parameters_to_ignore", ()))
        named = [
            (name, one)
            for name, one in wrapper.module.named_parameters()
            if one.requires_grad and name not in ignored and is_plain(one) and one.is_floating_point()
        ]
        # With a communication hook replicas may differ on purpose between two averages.
        kept = (
            [] if getattr(wrapper, "_comm_hooks", ()) else named[:: max(1, len(named) // PARAMETERS)][:PARAMETERS]
        )
        with torch.no_grad():
            weights = {name: values_of(one) for name, one in kept}
        given = _tensors(inputs)
        wrapped.samples[wrapped.steps] = Sample(_checksum(given), weights)
        wrapped.sampled = True
        sizes = [len(one) for one in given if one.dim() > 1]
        wrapped.rows = max([*sizes[:1], *([] if wrapped.rows is None else [wrapped.rows])], default=None)
        if wrapped.steps <= 1:  # thawed later, a layer is no longer looked for
            wrapped.local_norms = tuple(
                name for name, one in wrapper.module.named_modules() if type(one) in LOCAL_NORMS and one.training
            )

    def facts(self) -> WrapperFacts | None:
        """Return how the model that was called most was called; None if no model was wrapped."""
        if not self._all:
            return None
        one = max(self._all, key=lambda one: one.passes + one.bare)
        return WrapperFacts(
            one.name,
            one.world,
            one.passes,
            one.bare,
            one.steps,
            one.added,
            one.where,
            rows=one.rows,
            local_norms=one.local_norms,
        )

    @property
    def joined(self) -> bool:
        """Whether a wrapper was called within `join()`."""
        return any(not one.comparable for one in self._all)

    def samples(self) -> tuple[str, dict[int, Sample]] | None:
        """Return class and samples of the first model that was compared; None if there is none.

        The first one is the same on every rank; the one that is called most need not be.
        """
        of = next((one for one in self._all if one.samples and one.comparable), None)
        return None if of is None else (of.name, of.samples)


def is_sampled(steps: int) -> bool:
    """Whether a rank looks at its weights after so many steps."""
    return steps & (steps - 1) == 0  # 0 or a power of two


def is_plain(value: Any) -> TypeGuard[Tensor]:
    """Whether it is an ordinary tensor: another kind may do anything when it is read."""
    return type(value) in (Tensor, nn.Parameter) and value.layout == torch.strided


def values_of(parameter: Tensor) -> tuple[float, ...]:
    """Return some values of a parameter, at the same places on every rank."""
    return tuple(_some(parameter, VALUES).cpu().double().tolist())


def _some(tensor: Tensor, count: int) -> Tensor:
    """Return values of a tensor at places that depend on its size alone, as one dimension."""
    flat = tensor.detach().reshape(-1) if tensor.is_contiguous() else tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // count)][:count]


def _tensors(inputs: tuple[Any, ...]) -> list[Tensor]:
    """Return the tensors among a model's inputs."""
    parts = [
        part
        for given in inputs
        for part in (
            given.values() if isinstance(given, dict) else given if isinstance(given, list | tuple) else [given]
        )
    ]
    return [part for part in parts if is_plain(part)]


def _checksum(inputs: list[Tensor]) -> int | None:
    """Return a checksum of a model's inputs.

    Of all of them: masks alone are the same on two ranks wherever no row is padded.
    """
    found = None
    for part in [part for part in inputs if part.numel() >= FEWEST_ROWS][:TENSORS]:
        values = _some(part, ROWS).to("cpu", copy=True).contiguous()
        found = zlib.crc32(values.view(torch.uint8).numpy().tobytes(), part.numel() if found is None else found)
    return found


def generator_states() -> dict[str, int]:
    """Return a checksum of each generator's state, by name. Nothing is drawn, and no device is waited for."""
    states = {
        "torch": zlib.crc32(torch.get_rng_state().numpy().tobytes()),
        "random": zlib.crc32(array("Q", random.getstate()[1]).tobytes()),
    }
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        state = numpy_random.get_state(legacy=False)
        inner = state["state"]
        if state["bit_generator"] == "MT19937":  # a script may have set another one
            states["numpy"] = zlib.crc32(inner["key"].tobytes(), int(inner["pos"]))
    if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
        states["cuda"] = zlib.crc32(torch.cuda.get_rng_state().numpy().tobytes())
    return states
