"""Selects the sampled steps of a run."""

from __future__ import annotations

OFTEN = 32  # looks, after which only every eighth is taken: of a long run that is plenty, and costs less
SELDOM = 8


def is_sampled_step(step: int, every: int) -> bool:
    """Whether weights, updates and activations are measured in a step.

    Steps 0, 1, 2, 4, 8, … up to the first multiple of `every`, each multiple of it, and after `OFTEN` of those
    only each `SELDOM`th. With ``every=1`` all steps.

    Args:
        step: counted from 0.
        every: steps between two samples, at least 1.
    """
    look, between = divmod(step, every)
    if between:
        return not look and step & (step - 1) == 0
    return every == 1 or look < OFTEN or not look % SELDOM
