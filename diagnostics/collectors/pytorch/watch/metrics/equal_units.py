"""Looks for weights whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from diagnostics.collectors.pytorch.model import units_of
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared import equal_units
from diagnostics.facts.layers import EqualUnitsFacts


class EqualUnits(TrainingProbe):
    """Compares the units of each trainable weight before the first step and on request."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._units = equal_units.EqualUnits()
        self._begun = False

    def on_training_begin(self) -> None:
        """Remember which weights have equal units, the first time it is called."""
        if not self._begun and not _is_captured():
            self._begun = True
            weights = self.subject.layers.parameters.items()
            self._units.begin({name: units_of(weight) for name, weight in weights if weight.requires_grad})

    def facts(self) -> Iterator[EqualUnitsFacts | None]:
        """Compare again; None before the first step."""
        yield self._units.facts()


def _is_captured() -> bool:
    """Whether a CUDA graph is being captured, which waiting for a number would break."""
    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
