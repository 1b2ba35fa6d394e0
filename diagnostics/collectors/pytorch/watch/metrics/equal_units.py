"""Looks for weights whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.symmetry import rows_alike
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.layers import EqualUnitsFacts


class EqualUnits(TrainingProbe):
    """Compares the units of each trainable weight before the first step and on request.

    Memory: one unit of each weight whose units are equal at the start.
    """

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._started: dict[str, tuple[nn.Parameter, Tensor]] | None = None

    def on_training_begin(self) -> None:
        """Remember which weights have equal units."""
        if self._started is None and not _is_captured():
            self._started = {
                name: (weight, weight.detach()[0].clone())
                for name, weight in self.subject.layers.parameters.items()
                if weight.requires_grad and rows_alike(weight)
            }

    def facts(self) -> Iterator[EqualUnitsFacts]:
        """Compare again; nothing before the first step."""
        if self._started is not None:
            yield EqualUnitsFacts(
                tuple(
                    name
                    for name, (weight, first) in self._started.items()
                    if not torch.equal(weight.detach()[0], first) and rows_alike(weight)
                )
            )


def _is_captured() -> bool:
    """Whether a CUDA graph is being captured, which waiting for a number would break."""
    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
