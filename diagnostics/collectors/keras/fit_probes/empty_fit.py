"""Finds a `fit` that will make no step."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.collectors.keras.fit_probes import FitProbe
from diagnostics.facts.calls import EmptyFit


class NoEpochs(FitProbe):
    """Compares the first epoch with the last."""

    when = "first step"

    def facts(self) -> Iterable[EmptyFit]:
        """Return the epochs where there is none left to train."""
        first, last = self.subject.given.get("initial_epoch", 0), self.subject.given.get("epochs", 1)
        if type(first) is int and type(last) is int and 0 < last <= first:
            before = getattr(getattr(self.subject.model, "history", None), "epoch", None)
            yield EmptyFit(last, first, len(before) if before else None)
