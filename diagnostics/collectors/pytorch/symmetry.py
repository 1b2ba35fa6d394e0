"""Recognises weights whose units are copies of each other."""

from __future__ import annotations

import torch
from torch import Tensor

from diagnostics.collectors.shared.overfit_plan import ALIKE

from .local_tensors import PLAIN

LIMIT = 2**26  # numbers of a weight; a larger one is not compared
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # smaller ones have no largest number


def rows_alike(weight: Tensor) -> bool:
    """Whether all units of a weight (units, ...) are copies of each other, zeros included."""
    if (
        type(weight) not in PLAIN
        or weight.dtype not in DTYPES
        or weight.layout is not torch.strided
        or weight.is_meta
    ):
        return False
    if weight.ndim < 2 or weight.shape[0] < 2 or not 0 < weight.numel() <= LIMIT:
        return False
    values = weight.detach()
    largest = values[:2].abs().max()
    if bool((values[1] - values[0]).abs().max() > ALIKE * largest):  # nearly all weights end here
        return False
    return bool((values - values[:1]).abs().max() <= ALIKE * values.abs().max())
