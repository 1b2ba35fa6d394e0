"""Finds out whether a model of several layers is linear in its input, up to its last activation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import LinearFacts

from .examples import Axis, first_rows, other_rows
from .subject import Layer, Subject, Unclear

# Places on the line through two examples: between them, and beyond. A ReLU that is on for both is off somewhere.
FARTHER = (3.0, -2.0, 8.0, -7.0)
FACTOR = 1000.0  # of the first layer's weights: a tanh that is as good as linear near 0 is not beyond
ROUNDING = 1e-3  # of how far the answers to two examples lie apart, in float32
CLEAR = 1e-3  # of the answers' size: no less must they lie apart
STEEP = 6.0  # a logit from which on float32 holds too little of 1 - p
ENOUGH = 4  # numbers to compare
ASKED = 2  # places beyond the examples at which there must be as many
EDGE = 1e-5  # by which rounding takes a probability over 1
MAX_LAYERS = 16
HALF = 0.005  # how far a factor may be from 1/2

Undo = Callable[[Array], Array]
"""Undoes the last activation of answers (examples, ...); numbers that hold too little of it become NaN."""


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
        raise Unclear("needs a numeric input, not token ids")
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


def as_linear(ask: Callable[[float], Array]) -> Undo | None:
    """Return what makes the answers change in proportion along a line; None if nothing does.

    Args:
        ask: takes a place, 0 for one example and 1 for another, and returns the answers (examples, ...).
    """
    answers, found = {place: ask(place) for place in (0.0, 1.0)}, None
    for places in ((0.5,), FARTHER):
        answers |= {place: ask(place) for place in places}
        if not all(np.isfinite(values).all() for values in answers.values()):
            return None
        candidates = _undoing(np.stack(list(answers.values())))
        found = next((undo for undo in candidates if _is_linear(answers, undo)), None)
        if found is None:
            return None
    return found


def is_half(ask: Callable[[float], Array], halved: Callable[[float], Array], undo: Undo) -> bool:
    """Whether the answers to two examples lie half as far apart with other weights, up to rounding.

    Args:
        ask: as in `as_linear`.
        halved: the same with the other weights.
        undo: what `as_linear` returned.
    """
    one, other = (undo(asked(1.0)) - undo(asked(0.0)) for asked in (ask, halved))
    known = np.isfinite(one) & np.isfinite(other)
    if known.sum() < ENOUGH:
        return False
    whole, half = (float(np.square(step[known]).sum()) for step in (one, other))
    return whole > 0 and abs(float(np.sqrt(half / whole)) - 0.5) < HALF


def _is_linear(answers: dict[float, Array], undo: Undo) -> bool:
    one, step = undo(answers[0.0]), undo(answers[1.0]) - undo(answers[0.0])
    usable = np.isfinite(step)
    if usable.sum() < ENOUGH:
        return False
    size = float(np.sqrt(np.square(step[usable]).mean()))
    if not size > CLEAR * float(np.sqrt(np.square(one[usable]).mean())):
        return False
    beyond = 0
    for place, values in answers.items():
        difference = np.abs(undo(values) - (one + place * step))
        difference = difference[np.isfinite(difference)]
        if difference.size >= ENOUGH:
            beyond += place in FARTHER
            if difference.max() > ROUNDING * size * max(1.0, abs(place)):
                return False
    return beyond >= ASKED or not any(place in answers for place in FARTHER)


def _undoing(answers: Array) -> list[Undo]:
    """Return what may undo the last activation of answers (places, examples, ...)."""
    found: list[Undo] = [lambda values: values]
    several = answers.ndim > 2 and answers.shape[-1] > 1
    if several and answers.max() <= EDGE and np.allclose(np.exp(answers).sum(-1), 1, atol=1e-4):
        found.append(lambda values: values - values[..., :1])
    elif answers.min() >= 0 and answers.max() <= 1 + EDGE:
        found.append(_log_ratios if several and np.allclose(answers.sum(-1), 1, atol=1e-4) else _logits)
    return found


def _log_ratios(values: Array) -> Array:
    logs = np.log(np.maximum(values, 1e-30))
    ratios = logs - logs[..., :1]
    ratios[..., 0] = np.nan  # always 0
    return np.asarray(np.where((np.abs(ratios) < STEEP) & (logs[..., :1] > -STEEP), ratios, np.nan))


def _logits(values: Array) -> Array:
    inside = np.clip(values, 1e-7, 1 - 1e-7)
    logits = np.log(inside) - np.log1p(-inside)
    return np.asarray(np.where(np.abs(logits) < STEEP, logits, np.nan))
