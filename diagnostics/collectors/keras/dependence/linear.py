"""Finds out whether a Keras model of several layers is linear in its input, as without `activation=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from diagnostics.collectors.shared.dependence.linearity import FACTOR, as_linear, is_half
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import LinearFacts

from .subject import KerasSubject, Unclear

MOST_LAYERS = 16
NOISE = 0.05  # added to each weight, times its size


def find_linear(subject: KerasSubject, size: int) -> LinearFacts | None:
    """Follow the answers along lines between examples; None where they are no linear function of the input.

    Args:
        subject: the model.
        size: examples to run at a time; the batch has more.

    Raises:
        Unclear: the input is not one array of floating point, or there are too many layers.
        OutOfTime: the time is over.
    """
    if len(subject.inputs) != 1:
        raise Unclear("needs a model with one input")
    name, whole = next(iter(subject.inputs.items()))
    if whole.dtype.kind != "f" or whole.ndim < 2:
        raise Unclear("needs an input of floating-point numbers")
    kernels = _kernels(subject)
    if len(kernels) < 2:
        return None
    if len(kernels) > MOST_LAYERS:
        raise Unclear("there are many layers")
    one = whole[:size]
    other = whole[size : 2 * size] if len(whole) >= 2 * size else np.roll(one, -1, axis=0)
    start = subject.values()

    def ask(place: float, *factors: tuple[int, float]) -> Array:
        values = list(start)
        for number, factor in factors:
            values[number] = values[number] * tf.cast(factor, values[number].dtype)
        moved = (one + place * (other - one)).astype(whole.dtype)
        return subject.ask({name: moved}, values=values).main.astype(np.float64)

    if as_linear(ask) is None:
        return None
    start = subject.other_values(NOISE)  # opens a gate that starts at zero
    numbers = [number for _, number, _ in kernels]
    ends = (numbers[0], FACTOR), (numbers[-1], 1 / FACTOR)
    undo = as_linear(lambda place: ask(place, *ends))
    if undo is None:
        return None

    def halved(number: int) -> Callable[[float], Array]:
        return lambda place: ask(place, (number, 0.5))

    in_a_row = [(shown, width) for shown, number, width in kernels if is_half(ask, halved(number), undo)]
    if len(in_a_row) < 2:
        return None
    widths = [width for _, width in in_a_row]
    return LinearFacts(tuple(shown for shown, _ in in_a_row), min(widths), int(one[0].size), widths[-1])


def _kernels(subject: KerasSubject) -> list[tuple[str, int, int]]:
    """Return the layers with a matrix of weights: what to call them, the kernel's number, and their outputs."""
    places = {id(variable): number for number, variable in enumerate(subject.variables)}
    found = []
    for layer in subject.model._flatten_layers():
        kernel: Any = getattr(layer, "_kernel", None)
        number = places.get(id(kernel))
        if number is not None and len(kernel.shape) >= 2:
            width = getattr(layer, "units", None) or getattr(layer, "filters", None) or kernel.shape[-1]
            found.append((f"{layer.name} ({type(layer).__name__})", number, int(width)))
    return found
