"""Looks for weights whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.local_tensors import PLAIN
from diagnostics.facts.layers import EqualUnitsFacts

ALIKE = 1e-6  # relative: units closer than this are the same, up to rounding
LIMIT = 2**26  # numbers of a weight; a larger one is not compared
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # smaller ones have no largest number


class EqualUnits:
    """Compares the units of each trainable weight before the first step and on request.

    Memory: one unit of each weight whose units are equal at the start.
    """

    def __init__(self) -> None:
        self._started: dict[str, tuple[nn.Parameter, Tensor]] | None = None

    def begin(self, parameters: Mapping[str, nn.Parameter]) -> None:
        """Remember which weights have equal units, the first time it is called."""
        if self._started is None and not _is_captured():
            self._started = {
                name: (weight, weight.detach()[0].clone())
                for name, weight in parameters.items()
                if weight.requires_grad and rows_alike(weight)
            }

    def facts(self) -> EqualUnitsFacts | None:
        """Compare again; None before `begin`."""
        if self._started is None:
            return None
        return EqualUnitsFacts(
            tuple(
                name
                for name, (weight, first) in self._started.items()
                if not torch.equal(weight.detach()[0], first) and rows_alike(weight)
            )
        )


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


def _is_captured() -> bool:
    """Whether a CUDA graph is being captured, which waiting for a number would break."""
    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
