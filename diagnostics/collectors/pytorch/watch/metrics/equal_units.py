"""Looks for weights whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from diagnostics.collectors.pytorch.symmetry import units_of
from diagnostics.collectors.shared import equal_units


class EqualUnits(equal_units.EqualUnits):
    """Compares the units of each trainable weight before the first step and on request."""

    def begin_once(self, parameters: Mapping[str, nn.Parameter]) -> None:
        """Remember which weights have equal units, the first time it is called."""
        if self._started is None and not _is_captured():
            self.begin({name: units_of(weight) for name, weight in parameters.items() if weight.requires_grad})


def _is_captured() -> bool:
    """Whether a CUDA graph is being captured, which waiting for a number would break."""
    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
