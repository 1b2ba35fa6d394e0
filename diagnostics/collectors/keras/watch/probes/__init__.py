"""Measurements of the batches and the weights of a watched `fit` on TensorFlow; each is found by being here."""

from __future__ import annotations

from typing import Any

from diagnostics.collectors.keras.weights import Weights
from diagnostics.collectors.probe import Probe


class WatchProbe(Probe[Any]):
    """Measures one thing of the steps that a `KerasWatcher` sees. What it keeps does not grow with the run."""

    def on_batch(self, batch: Any) -> None:
        """Take a batch, as `train_step` gets it, before its step."""

    def on_weights(self, weights: Weights) -> None:
        """Take the weights, if they are there before the first step."""

    def on_epoch(self) -> None:
        """Note that an epoch begins."""

    def on_close(self) -> None:
        """Note that the `fit` is over."""
