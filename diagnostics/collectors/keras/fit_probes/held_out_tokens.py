"""Compares the tokens that `fit` trains on with those that it holds out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import named
from diagnostics.collectors.shared.split_overlap import tokens_of_arrays
from diagnostics.facts.array import Array
from diagnostics.facts.data import TokenSides

from . import FitProbe, on_tensorflow


class HeldOutTokens(FitProbe):
    """Reads arrays of integers, once the `fit` of a model with an embedding has ended."""

    def facts(self) -> Iterable[TokenSides]:
        """Return nothing where no rows are held out, or where they are not in arrays."""
        if not on_tensorflow() or not _has_embedding(self.subject.model):
            return
        given = self.subject.given
        x, held = _arrays(given.get("x")), given.get("validation_data")
        if held is None:
            share = float(given.get("validation_split") or 0)
            kept = {name: int(len(array) * (1 - share)) for name, array in x.items()} if share else {}
            sides = {name: (x[name][:end], x[name][end:]) for name, end in kept.items()}
            are_cut = True
        else:
            theirs = _arrays(held[0]) if isinstance(held, tuple | list) and held else {}
            sides = {name: (x[name], theirs[name]) for name in x.keys() & theirs.keys()}
            are_cut = bool(sides) and all(_follows(*side) for side in sides.values())
        found = tokens_of_arrays(sides, are_cut=are_cut)
        if found is not None:
            yield found


def _has_embedding(model: Any) -> bool:
    return any(isinstance(layer, keras.layers.Embedding) for layer in model._flatten_layers())


def _arrays(x: Any) -> dict[str, Array]:
    found = {} if x is None else named(x)
    return {name: array for name, array in found.items() if type(array) is np.ndarray and array.ndim}


def _follows(training: Array, held: Array) -> bool:
    """Whether both are slices of one array, the second right behind the first."""
    if training.base is None or training.base is not held.base or not len(training) or not len(held):
        return False
    ours, theirs = (side.__array_interface__["data"][0] for side in (training, held))
    step = training.strides[0]
    return step > 0 and held.strides == training.strides and theirs == ours + len(training) * step
