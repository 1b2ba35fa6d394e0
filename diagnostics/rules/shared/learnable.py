"""Whether a simple fit shows that there is something to learn."""

from __future__ import annotations

import math

from diagnostics.facts.course import SimpleFit

LEARNABLE = 0.7  # of the constant prediction's error on rows that the fit was not given
ERRORS = 5.0  # standard errors, of a share of wrong predictions: the better of several fits is chosen


def is_learnable(fit: SimpleFit | None) -> bool:
    """Whether the fit predicts other rows clearly better than a constant prediction; False if there is none."""
    if fit is None or fit.constant_error <= 0 or fit.error > LEARNABLE * fit.constant_error:
        return False
    by_chance = fit.constant_error * (1 - fit.constant_error) / fit.predicted
    return not fit.of_classes or fit.constant_error - fit.error >= ERRORS * math.sqrt(max(0.0, by_chance))
