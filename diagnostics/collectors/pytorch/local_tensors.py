"""Says which tensors can be read, and returns this process's part of distributed ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

PLAIN = (Tensor, nn.Parameter)


def local(tensor: Tensor) -> Tensor:
    """Return this process's shard of a DTensor, with no communication; any other tensor as it is."""
    if type(tensor) in PLAIN:
        return tensor
    module: Any = sys.modules.get("torch.distributed.tensor")
    if module is not None and isinstance(tensor, module.DTensor):
        return tensor.detach()._local_tensor
    return tensor


def is_sharded(tensor: Tensor) -> bool:
    """Whether several processes may hold a part of it each."""
    return local(tensor) is not tensor


def why_unreadable(tensors: Iterable[Tensor]) -> str:
    """Say of the first tensor without numbers of its own why it has none; empty if all have them."""
    for tensor in tensors:
        if tensor.is_meta:
            return "tensors on the device meta have no values"
        if type(tensor) in PLAIN:
            if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
                return "inside torch.func (vmap, grad) a tensor represents many"
        elif isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            return "lazy modules have no weights before their first batch"
        elif (fake := _fake_tensor()) is not None and isinstance(tensor, fake):
            return "the tensors of FakeTensorMode have no values"
    return ""


def unusual(tensors: Iterable[Tensor]) -> str:
    """Describe the first tensor of a kind that may not do what others do; empty if there is none."""
    for tensor in tensors:
        if tensor.is_quantized:
            return "quantized tensors"
        if tensor.is_nested:
            return "nested tensors"
        if tensor.layout is not torch.strided:
            return f"tensors of layout {tensor.layout}".replace("torch.", "")
        if type(tensor) not in PLAIN and hasattr(type(tensor), "__torch_dispatch__"):
            return f"tensors of type {type(tensor).__name__}"
    return ""


def all_finite(tensor: Tensor) -> bool:
    """Whether there is no NaN and no infinity, looked at without a copy."""
    values = local(tensor.detach())
    if values.layout is not torch.strided:
        values = values.coalesce().values() if values.layout is torch.sparse_coo else values.values()
    if values.is_complex():
        values = torch.view_as_real(values)
    if not values.numel() or not values.is_floating_point():
        return True
    try:
        low, high = torch.aminmax(values)
    except RuntimeError:  # eight-bit floats
        return bool(values.float().isfinite().all())
    return bool(low.isfinite() & high.isfinite())


def _fake_tensor() -> type[Tensor] | None:
    module: Any = sys.modules.get("torch._subclasses.fake_tensor")
    return None if module is None else module.FakeTensor
