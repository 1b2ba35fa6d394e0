"""Remembers the targets of some rows, and compares those of a row that comes again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diagnostics.collectors.keras.batch import take_rows
from diagnostics.collectors.keras.watch.probes import WatchProbe
from diagnostics.collectors.shared.repeated_rows import RowMemory


class RowTargets(WatchProbe):
    """Feeds a `RowMemory`."""

    part = "rows"

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._memory = RowMemory()

    def on_batch(self, batch: Any) -> None:
        """See `WatchProbe.on_batch`."""
        if self.subject.compares:
            take_rows(self._memory, batch)

    def on_epoch(self) -> None:
        """See `WatchProbe.on_epoch`."""
        self._memory.epoch_begins()

    def facts(self) -> Iterable[Any]:
        """Return what was remembered."""
        return (self._memory.facts(),)
