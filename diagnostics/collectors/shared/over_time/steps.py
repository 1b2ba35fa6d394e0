"""The steps of a run that are looked at."""

from __future__ import annotations

EXAMPLES = 8  # of the batch that are decoded; the loss is that of all
MAX_LOOKS = 64  # looks in a run: each is kept, and copies the model


def is_look_step(step: int) -> bool:
    """Whether a step is looked at where no steps are chosen: 0, 1, 2, 5, 10, 20, 50, …; 19 in a million."""
    return str(step).rstrip("0") in ("", "1", "2", "5")
