"""Measures the size of a step's update in bounded memory and time: on a sample of large tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.internal import without_collection
from diagnostics.collectors.pytorch.local_tensors import local

from .norms import Layers

SCALARS = 2**23  # weights compared in one step, 32 MiB in float32; the copy of a larger model would be noticed
RUN = 8  # slices left along the first dimension, for it to be the one that is thinned out


@dataclass
class Update:
    """One step of an optimizer, measured.

    Attributes:
        weights: (k,) L2 norms before it, of those of the weights that were compared.
        change: (k,) L2 norms of what it added to them.
        scales: what to multiply either by, to estimate the norm of the whole tensor; 1 where all was compared.
        which: (k,) the numbers of the parameters.
        sampled: (s,) L2 norms of the gradients of the weights compared, of those tensors of which a
            part was; NaN where that is not known.
        sampled_which: (s,) the places of these tensors in `which`.
    """

    weights: Tensor
    change: Tensor
    scales: list[float]
    which: tuple[int, ...]
    sampled: Tensor | None
    sampled_which: tuple[int, ...]


class UpdateMeasure:
    """Compares the weights that one optimizer moves before and after its step.

    Args:
        layers: of the model.
        held: the parameters, with their numbers.
        scalars: weights that are compared at most, roughly. Small tensors are compared whole; of larger ones
            evenly spaced slices are.
    """

    def __init__(self, layers: Layers, held: list[tuple[int, nn.Parameter]], scalars: int = SCALARS) -> None:
        self._layers = layers
        self._held = held
        self._which = tuple(number for number, _ in held)
        sizes = [local(parameter).numel() for _, parameter in held]
        quota = _quota(sizes, scalars)
        self._strides = [max(1, -(-size // quota)) for size in sizes]
        self._partial = tuple(place for place, stride in enumerate(self._strides) if stride > 1)
        self._before: list[Tensor] = []  # kept from step to step: new memory costs more than what it is used for
        self._sampled: Tensor | None = None
        self._under_way = False

    @property
    def remark(self) -> str:
        """What is not exact; empty if all of it is."""
        if not self._partial:
            return ""
        count = len(self._partial)
        return f"of {count} large {'tensor' if count == 1 else 'tensors'} a sample of the weights"

    def begin(self) -> None:
        """Copy the weights to be compared, before a step."""
        with torch.no_grad(), without_collection():
            self._copy()
            self._sampled = self._sampled_gradients()
        self._under_way = True

    def _copy(self) -> None:
        parts = self._parts()
        there = [(part.shape, part.dtype, part.device) for part in parts]
        if there != [(copy.shape, copy.dtype, copy.device) for copy in self._before]:
            self._before = [torch.empty_like(part, memory_format=torch.contiguous_format) for part in parts]
        torch._foreach_copy_(self._before, parts)

    def end(self) -> Update | None:
        """Compare, after the step; None if none was begun."""
        if not self._under_way:
            return None
        self._under_way = False
        with torch.no_grad(), without_collection():
            parts = self._parts()
            weights = self._layers.norms(self._before)
            torch._foreach_sub_(self._before, parts)
            scales = [
                math.sqrt(local(parameter).numel() / part.numel()) if part.numel() else 1.0
                for (_, parameter), part in zip(self._held, parts, strict=True)
            ]
            change = self._layers.norms(self._before)
        return Update(weights, change, scales, self._which, self._sampled, self._partial)

    def drop(self) -> None:
        """Free the copies, and give up the step that is under way."""
        self._before, self._under_way = [], False

    def _parts(self) -> list[Tensor]:
        pairs = zip(self._held, self._strides, strict=True)
        return [_thinned(local(parameter), stride) for (_, parameter), stride in pairs]

    def _sampled_gradients(self) -> Tensor | None:
        """Measure the gradients of what is compared: 0 where there is none, NaN where it is sparse."""
        if not self._partial:
            return None
        found = []
        for place in self._partial:
            parameter = self._held[place][1]
            gradient = None if parameter.grad is None else local(parameter.grad.detach())
            if gradient is None or gradient.layout is not torch.strided:
                found.append(local(parameter).new_full((), math.nan if gradient is not None else 0.0))
            else:
                found.append(_thinned(gradient, self._strides[place]))
        return self._layers.norms(found)


def _quota(sizes: list[int], scalars: int) -> int:
    """Return the size up to which tensors are compared whole, so that all together stay within `scalars`."""
    left, quota = scalars, max(1, scalars)
    for place, size in enumerate(sorted(sizes)):
        quota = max(1, left // (len(sizes) - place))
        if size > quota:
            return quota
        left -= size
    return max(1, scalars)


def _thinned(values: Tensor, stride: int) -> Tensor:
    """Return a view of every so many slices, along the first dimension that is long enough; all, of stride 1."""
    if stride == 1 or not values.ndim:
        return values
    sizes = list(values.shape)
    dim = next((d for d, size in enumerate(sizes) if size >= RUN * stride), sizes.index(max(sizes)))
    places: list[slice] = [slice(None)] * dim + [slice(None, None, min(stride, sizes[dim]))]
    return values.detach()[tuple(places)]
