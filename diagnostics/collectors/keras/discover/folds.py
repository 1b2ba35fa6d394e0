"""Finds evaluations on rows that the same model was trained on by an earlier `fit`, as in a cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.batch import inputs_of
from diagnostics.collectors.keras.replayable import can_be_read
from diagnostics.collectors.keras.values import current
from diagnostics.collectors.shared.repeated_rows import row_keys
from diagnostics.facts.array import Array
from diagnostics.facts.data import HeldOutBefore

MOST = 2**17  # rows of a fit that are remembered; of more none are
FITS = 32  # of a model that are followed: folds are fewer, and an agent that fits each batch has thousands
LEAST = 20  # rows of an evaluation
SEEN, NEW = 0.9, 0.01  # of them, that earlier fits had, and at most, that the latest has
SHARED = 0.3  # of the latest fit's rows: folds share half and more, tasks that are learned in turn share none
EVALUATIONS = 2  # after different fits: one may be a look back
WEIGHTS = 4096  # numbers of each variable, by which weights are recognised


@dataclass
class _Fits:
    """The fits of one model since its weights were made or set.

    Attributes:
        count: of them.
        latest: keys of the rows of the latest.
        earlier: of those before it.
        ended: the weights at its end; None while it runs.
        found: the fits after which such rows were evaluated.
    """

    count: int
    latest: Array
    earlier: Array
    ended: Array | None
    found: set[int]


class Folds:
    """Remembers a number for each row of a fit."""

    def __init__(self) -> None:
        self._fits: IdentityMap[Any, _Fits] = IdentityMap()
        self._begun: IdentityMap[Any, int] = IdentityMap()

    def fit_begins(self, model: Any, x: Any) -> None:
        """Take the rows of a fit that is about to run."""
        self._begun[model] = self._begun.get(model, 0) + 1
        before = self._fits.pop(model, None)
        if self._begun[model] > FITS:
            return
        keys = _keys(x)
        if keys is None or not model.built:
            return
        if before is None or before.ended is None or not np.array_equal(before.ended, _weights(model)):
            self._fits[model] = _Fits(1, keys, np.empty(0, np.uint64), None, set())
        else:
            earlier = np.union1d(before.earlier, before.latest)
            self._fits[model] = _Fits(before.count + 1, keys, earlier, None, before.found)

    def fit_ended(self, model: Any) -> None:
        """Remember the weights, to know whether they are set otherwise before the next fit."""
        if (fits := self._fits.get(model)) is not None:
            fits.ended = _weights(model)

    def evaluated(self, model: Any, x: Any) -> HeldOutBefore | None:
        """Compare the rows of an evaluation; return what was found, once it is certain."""
        fits = self._fits.get(model)
        if fits is None or fits.count < 2 or fits.count in fits.found or len(fits.found) >= EVALUATIONS:
            return None
        keys = _keys(x)
        if keys is None or len(keys) < LEAST or np.isin(fits.latest, fits.earlier).mean() < SHARED:
            return None
        seen = np.isin(keys, fits.earlier)
        if seen.mean() < SEEN or np.isin(keys, fits.latest).mean() > NEW:
            return None
        fits.found.add(fits.count)
        if len(fits.found) < EVALUATIONS:
            return None
        return HeldOutBefore(fits.count, len(fits.found), len(keys), int(seen.sum()))


def _keys(x: Any) -> Array | None:
    if x is None or not can_be_read((x, None)):
        return None
    if any(isinstance(part, tf.data.Dataset | np.memmap) for part in keras.tree.flatten(x)):
        return None  # the latter lie on a disk
    inputs = list(inputs_of((x,)).values())
    rows = {len(part) for part in inputs if part.ndim > 1}
    if len(rows) != 1 or not all(part.ndim > 1 for part in inputs) or not 0 < rows.pop() <= MOST:
        return None
    return row_keys(inputs)


def _weights(model: Any) -> Array:
    """Return some numbers of each trainable variable."""
    flat = [tf.reshape(current(one), (-1,))[:WEIGHTS].numpy() for one in model.trainable_variables]
    return np.concatenate(flat) if flat else np.empty(0)
