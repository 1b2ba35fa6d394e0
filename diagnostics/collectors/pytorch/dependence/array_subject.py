"""Asks a copy of a module in arrays, as the measurements do that every framework shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from diagnostics.collectors.shared.dependence import subject as shared
from diagnostics.collectors.shared.dependence.linear import MOST_LAYERS
from diagnostics.collectors.shared.dependence.subject import Answer, Inputs, Layer, Operation, Unclear
from diagnostics.facts.array import Array

from .operations import operations_seen, summaries_seen
from .subject import Subject


class ArraySubject(shared.Subject):
    """See `shared.dependence.subject.Subject`.

    Args:
        subject: the copy.

    Attributes:
        model: of the subject.

    Raises:
        Unclear: an input is no array of numbers.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject, self.model = subject, subject.model
        self.inputs = {name: _array(tensor) for name, tensor in subject.inputs.items()}
        self.target = None if subject.target is None else _array(subject.target)
        self.ignore_index, self.tested = subject.ignore_index, subject.tested
        self.batch_first = subject.batch_first
        whole = self.target is not None and self.target.dtype.kind != "f"
        self.predicts_tokens = subject.predicts_tokens and whole

    def ask(self, inputs: Inputs, *, training: bool = False, seed: int = 0) -> Answer:
        """See `Subject.ask`."""
        tensors = {name: _tensor(array, self._subject.inputs[name]) for name, array in inputs.items()}
        answer = self._subject.ask(tensors, training=training, seed=seed)
        return Answer(answer.main.cpu().numpy(), [other.cpu().numpy() for other in answer.others])

    def operations_seen(self, size: int) -> AbstractContextManager[list[Operation]]:
        """See `shared.dependence.subject.Subject`."""
        return operations_seen(self.model, size)

    def summaries_seen(self, rows: int, length: int) -> AbstractContextManager[list[str]]:
        """See `shared.dependence.subject.Subject`."""
        return summaries_seen(self.model, rows, length)

    def mixes_by_design(self) -> str | None:
        """See `shared.dependence.subject.Subject`."""
        if any(isinstance(m, _BatchNorm) and m.running_mean is None for m in self.model.modules()):
            return "its batch norm keeps no running statistics, and mixes examples by design"
        return None

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put parameters and buffers back to what they were."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        kept = [tensor.detach().clone() for tensor in tensors]
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, saved in zip(tensors, kept, strict=True):
                    tensor.copy_(saved)

    def add_noise(self) -> None:
        """See `shared.dependence.subject.Subject`."""
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.is_floating_point():
                    noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                    size = parameter.std() if parameter.numel() > 1 else parameter.abs()
                    parameter.add_(noise * shared.NOISE * (size if float(size) > 0 else 1.0))

    def layers(self, inputs: Inputs) -> list[Layer]:
        """See `shared.dependence.subject.Subject`."""
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
        if len({path for path, _ in seen}) < len(seen) or len(seen) > MOST_LAYERS:
            raise Unclear("a layer runs several times, or there are many")
        return [Layer(f"{path} ({type(layer).__name__})", _outputs(layer), layer) for path, layer in seen]

    @contextmanager
    def scaled(self, layer: Layer, factor: float) -> Iterator[None]:
        """See `shared.dependence.subject.Subject`."""
        weight: Any = layer.key.weight
        kept = weight.detach().clone()
        with torch.no_grad():
            weight.mul_(factor)
        try:
            yield
        finally:
            with torch.no_grad():
                weight.copy_(kept)


def _outputs(layer: Any) -> int:
    return int(layer.weight.shape[1] if getattr(layer, "transposed", False) else layer.weight.shape[0])


def _array(tensor: Tensor) -> Array:
    """Return the numbers of a tensor, which may be shared; those of a format that NumPy lacks as float32."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise Unclear("an input is sparse")
    tensor = tensor.detach().cpu()
    try:
        return np.asarray(tensor.numpy())
    except TypeError:  # bfloat16
        return np.asarray(tensor.float().numpy())


def _tensor(array: Array, like: Tensor) -> Tensor:
    made = torch.from_numpy(np.asarray(array)).to(like)
    return made if type(like) is Tensor else made.as_subclass(type(like))
