"""Reads the units of a weight, which its first axis counts."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.shared.equal_units import MAX_NUMBERS, Read, units_alike
from diagnostics.facts.array import Array

from .local_tensors import PLAIN

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # smaller ones have no largest number


def units_of(weight: Tensor) -> Read | None:
    """Return what reads the units of a weight (units, ...); None if it has none."""
    if (
        type(weight) not in PLAIN
        or weight.dtype not in DTYPES
        or weight.layout is not torch.strided
        or weight.is_meta
    ):
        return None
    if weight.ndim < 2 or weight.shape[0] < 2 or not 0 < weight.numel() <= MAX_NUMBERS:
        return None

    def read(count: int | None) -> Array:
        return np.asarray(weight.detach()[:count].float().cpu().numpy())

    return read


def rows_alike(weight: Tensor) -> bool:
    """Whether all units of a weight (units, ...) are copies of each other, zeros included."""
    return units_alike(units_of(weight))
