"""A copy of a module that can be asked again about any examples of one batch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from diagnostics.collectors.isolation.rng import generators_within
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.dependence.operations import attention_seen
from diagnostics.collectors.pytorch.model import fills_in_tokens
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.shared.dependence import subject as shared
from diagnostics.collectors.shared.dependence.linearity import MAX_LAYERS
from diagnostics.collectors.shared.dependence.subject import (
    NO_BATCH_NORM,
    Answer,
    Inputs,
    Layer,
    Operation,
    OutOfTime,
    Unclear,
)
from diagnostics.facts.array import Array

from .operations import operations_seen, summaries_seen

Call = Callable[[nn.Module, Mapping[str, Tensor]], Any]


class Subject(shared.Subject):
    """A copy of a model, and how to call it.

    Args:
        model: a copy that nobody else holds; its mode and buffers change.
        call: (model, inputs by name) to what the model returns.
        inputs: of one batch, by name. Those that are not dense stay as they are.
        tested: see `shared.Subject`.
        target: of the loss; None if not known.
        ignore_index: see `shared.Subject`.
        batch_first: see `shared.Subject`.
        shuffled: whether the examples are known to come in random order; None if not known.
        predicts_tokens: see `shared.Subject`.
        unused_mask: a padding mask of the batch that the model was not given, with its name; None without one.
        deadline: of `time.monotonic`, after which `ask` raises.
        original: what `model` is a copy of, where nothing changes it any more; None if something may.
    """

    def __init__(
        self,
        model: nn.Module,
        call: Call,
        inputs: Mapping[str, Tensor],
        tested: frozenset[str] = frozenset(),
        target: Tensor | None = None,
        ignore_index: int | None = None,
        batch_first: bool = False,
        shuffled: bool | None = None,
        predicts_tokens: bool = False,
        unused_mask: tuple[str, Array] | None = None,
        deadline: float = float("inf"),
        original: nn.Module | None = None,
    ) -> None:
        self._original = original
        self.model, self.shuffled, self._call, self._deadline = model, shuffled, call, deadline
        arrays = {name: _array(tensor) for name, tensor in inputs.items()}
        self.inputs = {name: array for name, array in arrays.items() if array is not None}
        self._like = {name: inputs[name] for name in self.inputs}
        self._fixed = {name: tensor for name, tensor in inputs.items() if name not in self._like}
        self.target = None if target is None else _array(target)
        self.tested, self.ignore_index, self.batch_first = tested, ignore_index, batch_first
        self.unused_mask, self.fills_in_tokens = unused_mask, fills_in_tokens(model)
        self.predicts_tokens = predicts_tokens and target is not None and not target.is_floating_point()
        # Generators of random numbers that the model draws from, beside the global ones.
        self._generators = [own.generator for own in generators_within(*model.modules())]

    def ask(self, inputs: Inputs, *, training: bool = False, seed: int = 0) -> Answer:
        """Run the copy on these inputs.

        Raises:
            OutOfTime: the deadline is over.
            ValueError: no tensor of floating point was returned.
        """
        if time.monotonic() > self._deadline:
            raise OutOfTime
        given = {name: _tensor(array, self._like[name]) for name, array in inputs.items()}
        given |= {name: tensor.clone() for name, tensor in self._fixed.items()}  # the copy may change them
        if self.model.training != training:
            self.model.train(training)
        with torch.no_grad(), random_states_kept(*self._generators), _without_fast_path():
            torch.default_generator.manual_seed(seed)
            outputs = self._call(self.model, given)
        main = prediction_in(outputs)
        if main is None:
            raise ValueError("the model does not return a floating-point tensor with at least one axis")
        others = [t for t in tensors(outputs) if t is not main and t.is_floating_point()]
        return Answer(_answer(main), [_answer(other) for other in others])

    @contextmanager
    def observed(self, before: Callable[[Mapping[str, Tensor]], object], mode: Any) -> Iterator[None]:
        """Tell of the inputs of each call within, which runs in a mode of PyTorch's."""
        plain = self._call

        def call(model: nn.Module, given: Mapping[str, Tensor]) -> Any:
            before(given)
            with mode:
                return plain(model, given)

        self._call = call
        try:
            yield
        finally:
            self._call = plain

    def operations_seen(self, size: int) -> AbstractContextManager[list[Operation]]:
        """See `shared.Subject`."""
        return operations_seen(self.model, size)

    def summaries_seen(self, rows: int, length: int) -> AbstractContextManager[list[str]]:
        """See `shared.Subject`."""
        return summaries_seen(self.model, rows, length)

    def mixes_by_design(self) -> str | None:
        """See `shared.Subject`."""
        if any(isinstance(m, _BatchNorm) and m.running_mean is None for m in self.model.modules()):
            return "its batch norm keeps no running statistics, and mixes examples by design"
        return None

    def reads_steps(self, inputs: Inputs, length: int) -> shared.StepReader | None:
        """See `shared.Subject`."""
        layers = [m for m in self.model.modules() if isinstance(m, nn.RNNBase | nn.RNNCellBase)]
        if layers:
            both = any(isinstance(layer, nn.RNNBase) and layer.bidirectional for layer in layers)
            return None if both else "recurrent"
        with attention_seen(self.model, length) as seen:
            self.ask(inputs)
        return "attention" if seen else None

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put parameters and buffers back to what they were."""
        parameters, buffers = dict(self.model.named_parameters()), list(self.model.buffers())
        same = {} if self._original is None else dict(self._original.named_parameters())
        if {name: p.shape for name, p in same.items()} != {name: p.shape for name, p in parameters.items()}:
            same = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        kept = [buffer.detach().clone() for buffer in buffers]
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, saved in zip((*parameters.values(), *buffers), (*same.values(), *kept), strict=True):
                    tensor.copy_(saved)

    def add_noise(self) -> None:
        """See `shared.Subject`."""
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.is_floating_point():
                    noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                    size = parameter.std() if parameter.numel() > 1 else parameter.abs()
                    parameter.add_(noise.mul_(shared.NOISE).mul_(size if float(size) > 0 else 1.0))

    def layers(self, inputs: Inputs) -> list[Layer]:
        """See `shared.Subject`."""
        if self._fixed:
            raise Unclear("an input is not a dense tensor")
        seen: list[tuple[str, nn.Module]] = []

        def noted(path: str) -> Callable[..., None]:
            return lambda module, *_: seen.append((path, module))

        handles = [
            module.register_forward_hook(noted(path))
            for path, module in self.model.named_modules()
            if isinstance(weight := getattr(module, "weight", None), Tensor) and weight.ndim >= 2
        ]
        try:
            self.ask(inputs)
        finally:
            for handle in handles:
                handle.remove()
        if len({path for path, _ in seen}) < len(seen) or len(seen) > MAX_LAYERS:
            raise Unclear("a layer runs several times, or the model has too many layers")
        return [Layer(f"{path} ({type(layer).__name__})", _outputs(layer), layer) for path, layer in seen]

    @contextmanager
    def scaled(self, layer: Layer, factor: float) -> Iterator[None]:
        """See `shared.Subject`."""
        weight: Any = layer.key.weight
        kept = weight.detach().clone()
        with torch.no_grad():
            weight.mul_(factor)
        try:
            yield
        finally:
            with torch.no_grad():
                weight.copy_(kept)

    @contextmanager
    def own_statistics(self) -> Iterator[float]:
        """See `shared.Subject`."""
        norms = [m for m in self.model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
        if not norms:
            raise Unclear(NO_BATCH_NORM)
        before = [(norm.running_mean, norm.running_var) for norm in norms]
        try:
            for norm in norms:
                norm.running_mean = norm.running_var = None
            yield max(1 / norm.momentum if norm.momentum else math.inf for norm in norms)
        finally:
            for norm, (mean, variance) in zip(norms, before, strict=True):
                norm.running_mean, norm.running_var = mean, variance


def _outputs(layer: Any) -> int:
    return int(layer.weight.shape[1] if getattr(layer, "transposed", False) else layer.weight.shape[0])


def _array(tensor: Tensor) -> Array | None:
    """Return the numbers of a tensor, which may be shared; None of a sparse one, and where NumPy has no such type.

    Half precision becomes float32, which holds its every value.
    """
    try:
        tensor = tensor.detach().cpu()
        if tensor.is_floating_point() and tensor.element_size() < 4:
            tensor = tensor.float()
        return np.asarray(tensor.numpy())
    except Exception:  # nested and quantized tensors, too
        return None


def _tensor(array: Array, like: Tensor) -> Tensor:
    """Copy an array to where a tensor is."""
    made = torch.tensor(array).to(like)
    return made if type(like) is Tensor else made.as_subclass(type(like))


def _answer(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().float().cpu().numpy())


def all_counted(inputs: Mapping[str, Tensor]) -> bool:
    """Whether each tensor of integers counts the examples: one that does not may hold their numbers."""
    sizes = [tensor.shape[0] for tensor in inputs.values() if tensor.ndim]
    return all(
        tensor.is_floating_point() or (tensor.ndim > 0 and tensor.shape[0] == sizes[0])
        for tensor in inputs.values()
    )


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Let layers of a transformer compute as in training: the fast path rounds otherwise, and hooks end it."""
    mha: Any = getattr(torch.backends, "mha", None)
    if mha is None:
        yield
        return
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)
