"""Calls a function of PyTorch on copies of its arguments, with gradients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.checks.calls import SEED, Arguments, Called, named_parts, names_in
from diagnostics.collectors.isolation.rng import objects_within
from diagnostics.collectors.pytorch.state import kept
from diagnostics.collectors.shared.reread import seed_globals

_BINARY = ("add", "sub", "mul", "div", "true_divide", "pow", "__radd__", "__rsub__", "__rmul__", "__rtruediv__")


class TorchCaller:
    """See `Caller`."""

    name = "torch"

    def of_array(self, array: Any) -> Tensor:
        """See `Caller`."""
        return torch.from_numpy(array)

    def widened(self, value: Any) -> Any:
        """See `Caller`."""
        return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value

    def moved(self, value: Any, rng: np.random.Generator, by: float) -> Any:
        """See `Caller`."""
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.detach() + torch.from_numpy(by * rng.standard_normal(tuple(value.shape))).to(value)
        return value

    @contextmanager
    def kept(self, *functions: Any) -> Iterator[None]:
        """See `Caller`."""
        with kept(functions, *_modules(functions)):
            yield

    def call(self, function: Callable[..., Any], given: Arguments, gradients: bool, watched: bool) -> Called:
        """See `Caller`."""
        leaves = [_leaf(value, gradients) for value in given.values]
        # The function gets copies of the leaves, to which it may write.
        handed = [leaf.clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        seed_globals(SEED)
        looking = _Expanded()
        try:
            if watched:
                with looking:
                    outputs = given.call(function, handed)
            else:
                outputs = given.call(function, handed)
        except Exception as error:
            return Called(error=error)
        parts = named_parts(outputs)
        changed = [
            name
            for name, before, after in zip(given.names, leaves, handed, strict=True)
            if isinstance(before, Tensor) and not _equal(before.detach(), after.detach())
        ]
        found = _gradients(parts, given.names, leaves) if gradients else {}
        return Called(parts, found, tuple(changed), operation=looking.sentence)


def _leaf(value: Any, gradients: bool) -> Any:
    if not isinstance(value, Tensor):
        return value
    leaf = value.detach().clone()
    differentiable = leaf.is_floating_point() or leaf.is_complex()
    return leaf.requires_grad_() if gradients and differentiable else leaf


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return torch.equal(one, other) or bool(((one == other) | ((one != one) & (other != other))).all())


def _gradients(parts: dict[str, Any], names: Sequence[str], leaves: Sequence[Any]) -> dict[str, Any]:
    """Return the gradient of a weighted sum of all results; the weights depend on their shapes alone."""
    total: Tensor | None = None
    for output in parts.values():
        if isinstance(output, Tensor) and output.requires_grad:
            generator = torch.Generator().manual_seed(SEED)
            weights = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output)
            part = (output * weights).sum()
            part = part.real if part.is_complex() else part
            total = part if total is None else total + part.to(total.dtype)
    wanted = {name: leaf for name, leaf in zip(names, leaves, strict=True) if isinstance(leaf, Tensor)}
    wanted = {name: leaf for name, leaf in wanted.items() if leaf.requires_grad}
    if total is None or not wanted:
        return dict.fromkeys(wanted)
    found = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
    return dict(zip(wanted, found, strict=True))


def _modules(functions: Sequence[Any]) -> list[nn.Module]:
    """Return the modules that the functions are, hold, or name among their globals."""
    found: dict[int, nn.Module] = {}
    for value in objects_within(*functions):
        if isinstance(value, nn.Module):
            found[id(value)] = value
        if isinstance(value, FunctionType):
            used = (value.__globals__.get(name) for name in names_in(value))
            found |= {id(one): one for one in used if isinstance(one, nn.Module)}
    return list(found.values())


class _Expanded(TorchFunctionMode):  # type: ignore[misc]
    """Notes the first operation that expands both of its operands, as (4, 1) and (4,) become (4, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.sentence = ""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if not self.sentence and name in _BINARY and len(args) > 1 and isinstance(result, Tensor):
            one, other = args[:2]
            if isinstance(one, Tensor) and isinstance(other, Tensor):
                shapes = tuple(one.shape), tuple(other.shape), tuple(result.shape)
                if shapes[2] not in shapes[:2] and one.ndim != other.ndim:
                    frame: Any = sys._getframe(1)
                    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                    self.sentence = f"{place} combines {shapes[0]} with {shapes[1]} into {shapes[2]}"
        return result
