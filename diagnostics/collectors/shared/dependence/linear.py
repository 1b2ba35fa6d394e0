"""Finds out whether a model of several layers is linear in its input, as where activations were forgotten."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import LinearFacts

from .examples import Axis, first_rows, other_rows
from .linearity import FACTOR, as_linear, is_half
from .subject import Layer, Subject, Unclear

MAX_LAYERS = 16


def find_linear(subject: Subject, axis: Axis) -> LinearFacts | None:
    """Follow the answers along lines between examples; None where they are no linear function of the input.

    Raises:
        Unclear: the input is not one array of floating point, or the layers do not run once each.
        OutOfTime: the time is over.
    """
    if len(subject.inputs) != 1:
        raise Unclear("needs a model with one input")
    name, whole = next(iter(subject.inputs.items()))
    if whole.dtype.kind != "f" or whole.ndim < 2:
        raise Unclear("needs an input of numbers, not of tokens")
    one, other = first_rows(subject, axis)[name], other_rows(subject, axis)[name]
    layers = subject.layers({name: one})
    if len(layers) < 2:
        return None

    def ask(place: float) -> Array:
        moved = (one + place * (other - one)).astype(whole.dtype)
        return subject.ask({name: moved}).main.astype(np.float64)

    def halved(layer: Layer) -> Callable[[float], Array]:
        def ask_again(place: float) -> Array:
            with subject.scaled(layer, 0.5):
                return ask(place)

        return ask_again

    if as_linear(ask) is None:
        return None
    with subject.restored():
        subject.add_noise()
        with subject.scaled(layers[0], FACTOR), subject.scaled(layers[-1], 1 / FACTOR):
            undo = as_linear(ask)
        if undo is None:
            return None
        in_a_row = [layer for layer in layers if is_half(ask, halved(layer), undo)]
    if len(in_a_row) < 2:
        return None
    return LinearFacts(
        layers=tuple(layer.shown for layer in in_a_row),
        narrowest=min(layer.outputs for layer in in_a_row),
        inputs=int(one[0].size),
        outputs=in_a_row[-1].outputs,
    )
