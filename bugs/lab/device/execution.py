"""What the worker does with one entry of the queue: run it on the real tensors, and put the results away."""

from __future__ import annotations

from typing import Any

import torch

from bugs.lab.device.inference import Layout
from bugs.lab.device.memory import Cell
from bugs.lab.device.stream import KernelError


class Place:
    """An argument of a queued operation: where in which cell the worker finds the real tensor."""

    __slots__ = ("cell", "layout")

    def __init__(self, cell: Cell, layout: Layout) -> None:
        self.cell, self.layout = cell, layout

    def tensor(self) -> torch.Tensor:
        """The real tensor, on the CPU; called by the worker, or by a host that has waited."""
        base = self.cell.tensor
        shape, stride, offset, dtype, _ = self.layout
        if base.dtype != dtype:  # what view(dtype) made
            return torch.empty(0, dtype=dtype).set_(base.untyped_storage(), offset, shape, stride)
        return base.as_strided(shape, stride, offset)


def _real(value: Any) -> Any:
    if type(value) is Place:
        return value.tensor()
    if type(value) is list:
        return [_real(item) for item in value]
    return value


def called(operation: Any, places: list[Any], named: dict[str, Any]) -> Any:
    """Call the operation with the real tensors.

    Raises:
        KernelError: whatever the operation raised.
    """
    arguments = _real(places)
    try:
        return operation(*arguments, **{name: _real(value) for name, value in named.items()})
    except Exception as error:
        raise KernelError(error, arguments) from error


def run(operation: Any, places: list[Any], named: dict[str, Any], made: list[Place | None]) -> None:
    """Run the operation, and put its results where the host has been promised them."""
    returned = called(operation, places, named)
    for place, real in zip(made, returned if isinstance(returned, list | tuple) else (returned,), strict=False):
        if place is None:
            continue
        shape, stride, _, dtype, _ = place.layout
        if real.shape != shape or real.dtype != dtype:
            raise RuntimeError(f"promised {list(shape)} of {dtype}, got {list(real.shape)} of {real.dtype}")
        if real.stride() != stride or real.storage_offset() != 0:  # a kernel may lay its result out otherwise
            real = torch.empty_strided(shape, stride, dtype=dtype).copy_(real)
        place.cell.tensor = real


def overwrite(place: Place, values: torch.Tensor) -> None:
    """Put the host's values into a tensor of the device."""
    place.tensor().copy_(values)
