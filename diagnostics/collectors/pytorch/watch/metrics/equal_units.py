"""Looks for weights whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.symmetry import rows_alike
from diagnostics.facts.layers import EqualUnitsFacts


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


def _is_captured() -> bool:
    """Whether a CUDA graph is being captured, which waiting for a number would break."""
    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
