"""Keeps a few rows of the first batch of a `fit`, for the report to show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diagnostics.collectors.keras.batch import view_of
from diagnostics.collectors.keras.watch.probes import WatchProbe
from diagnostics.facts.batch_view import BatchView


class FirstBatch(WatchProbe):
    """Looks at the first batch alone."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._view: BatchView | None = None
        self._seen = False

    def on_batch(self, batch: Any) -> None:
        """Take the first batch."""
        if self.subject.shows_batch and not self._seen:
            self._seen = True
            self._view = view_of("training", batch)

    def facts(self) -> Iterable[BatchView]:
        """Return what to show."""
        return () if self._view is None else (self._view,)
