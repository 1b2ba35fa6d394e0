"""Describes how many predictions change when the padding is removed."""

from __future__ import annotations

from diagnostics.facts.dependence import RemovedPadding


def changed_predictions(removed: RemovedPadding | None) -> str:
    """Return a sentence about the rows whose predictions change, with a space behind it; empty if none does."""
    if removed is None or not removed.changed:
        return ""
    rows = f"{removed.changed} of {removed.rows} padded rows"
    change = "Moving the padding to the other end" if removed.moved else "Removing the padding"
    if removed.by_class:
        return f"{change} changes the predicted class of {rows}. "
    return (
        f"{change} changes the predictions for {rows} by more than half of their standard deviation across rows "
        f"({removed.spread:.2g}). "
    )
