"""Checks with a simple fit whether there is something to learn."""

from __future__ import annotations

import math

from diagnostics.facts.course import SimpleFit

LEARNABLE = 0.7  # of the constant prediction's error on rows that were not used for the fit
UNRELATED = 0.9  # of it: the best of several fits to noise is this good by luck
ERRORS = 5.0  # standard errors of an error rate; so many because the best of several fits is chosen


def is_learnable(fit: SimpleFit | None) -> bool:
    """Return whether the fit clearly beats a constant prediction on other rows; False without a fit."""
    if fit is None or fit.constant_error <= 0 or fit.error > LEARNABLE * fit.constant_error:
        return False
    by_chance = fit.constant_error * (1 - fit.constant_error) / fit.predicted
    return not fit.of_classes or fit.constant_error - fit.error >= ERRORS * math.sqrt(max(0.0, by_chance))


def is_unrelated(fit: SimpleFit | None) -> bool:
    """Return whether the fit is no better than a constant prediction on other rows; False without a fit."""
    return fit is not None and fit.constant_error > 0 and fit.error >= UNRELATED * fit.constant_error
