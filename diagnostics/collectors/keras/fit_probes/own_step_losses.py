"""Finds what a step of the user's own leaves out of its loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diagnostics.collectors.keras.fit_probes import FitProbe
from diagnostics.collectors.keras.model import has_own_loss, has_own_train_step


class OwnStepLosses(FitProbe):
    """Takes the graph of its loss, which is recomputed for others, and the losses that it has not read."""

    def facts(self) -> Iterable[Any]:
        """Return both."""
        model, graph = self.subject.model, self.subject.graph()  # which is forgotten in any case
        if has_own_train_step(model):
            return graph, self.subject.losses.of_model(model, "train_step")
        return (self.subject.losses.of_model(model, "compute_loss"),) if has_own_loss(model) else ()
