"""Keeps a few images with their masks, boxes or points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diagnostics.collectors.keras.batch import take_images
from diagnostics.collectors.keras.watch.probes import WatchProbe
from diagnostics.collectors.shared.flipped_targets import ImageTargets


class FlippedImageTargets(WatchProbe):
    """Feeds `ImageTargets`."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._kept = ImageTargets()

    def on_batch(self, batch: Any) -> None:
        """See `WatchProbe.on_batch`."""
        take_images(self._kept, batch)

    def facts(self) -> Iterable[Any]:
        """Return how the targets fit."""
        return (self._kept.facts(),)
