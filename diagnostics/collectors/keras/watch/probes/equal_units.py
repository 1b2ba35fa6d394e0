"""Looks for kernels whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diagnostics.collectors.keras.watch.probes import WatchProbe
from diagnostics.collectors.keras.weights import Weights, units_of
from diagnostics.collectors.shared.equal_units import EqualUnits
from diagnostics.facts.layers import EqualUnitsFacts


class EqualKernels(WatchProbe):
    """Compares the units of each kernel."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._units = EqualUnits()

    def on_weights(self, weights: Weights) -> None:
        """See `WatchProbe.on_weights`."""
        kernels = zip(weights.names, weights.variables, strict=False)
        self._units.begin({name: units_of(kernel) for name, kernel in kernels})

    def facts(self) -> Iterable[EqualUnitsFacts | None]:
        """Return those that are equal now."""
        return (self._units.facts(),)
