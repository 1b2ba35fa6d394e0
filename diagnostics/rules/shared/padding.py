"""Says how many predictions change without padding."""

from __future__ import annotations

from diagnostics.facts.dependence import RemovedPadding


def changed_predictions(removed: RemovedPadding | None) -> str:
    """Return a sentence about the rows whose predictions change, with a space behind it; empty if none does."""
    if removed is None or not removed.changed:
        return ""
    rows = f"{removed.changed} of {removed.rows} padded rows"
    without = "With the padding at the other end" if removed.moved else "Without their padding"
    if removed.by_class:
        return f"{without}, {rows} get another class. "
    return (
        f"{without}, the predictions for {rows} change by more than half of the standard deviation over the rows "
        f"({removed.spread:.2g}). "
    )
