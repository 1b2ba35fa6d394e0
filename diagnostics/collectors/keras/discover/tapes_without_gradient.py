"""Counts the tapes of a loop that recorded a pass, and were asked for no gradient before the step."""

from __future__ import annotations

from diagnostics.facts.calls import TapesWithoutGradient


class UnaskedCount:
    """Takes the steps of one optimizer, one by one."""

    def __init__(self) -> None:
        self._steps = self._tapes = 0
        self._fewest: int | None = None

    def stepped(self, unasked: int) -> None:
        """Take how many tapes were left unasked since the step before."""
        unasked = max(0, unasked)
        self._steps += 1
        self._tapes += unasked
        self._fewest = unasked if self._fewest is None else min(self._fewest, unasked)

    def facts(self) -> TapesWithoutGradient | None:
        """Return what was counted; None where no step left a tape."""
        return TapesWithoutGradient(self._steps, self._tapes, self._fewest) if self._fewest else None
