"""Finds out whether the answers of a recurrent model depend on one step of a sequence alone."""

from __future__ import annotations

import numpy as np
from torch import nn

from diagnostics.collectors.shared.dependence.examples import Axis, counts_examples, first_rows, other_rows
from diagnostics.collectors.shared.dependence.inputs import change_at_all
from diagnostics.collectors.shared.dependence.subject import Inputs, Unclear
from diagnostics.facts.array import Array

from .subject import Subject

MIN_STEPS = 4  # of a sequence


def compare_steps(subject: Subject, axis: Axis) -> tuple[int | None, int | None]:
    """Replace all steps of a sequence but one, of a model with recurrent layers that read forward only.

    Returns:
        The number of steps, where those after the first change no answer, None where they do; and the same of
        those before the last, which a hidden state that is recreated at each step never reaches.

    Raises:
        Unclear: this cannot be tested.
        OutOfTime: the time is over.
    """
    layers = [m for m in subject.model.modules() if isinstance(m, nn.RNNBase | nn.RNNCellBase)]
    if not layers or any(isinstance(layer, nn.RNNBase) and layer.bidirectional for layer in layers):
        raise Unclear("needs recurrent layers that read forward only")
    time = 1 - axis.of_inputs
    first = first_rows(subject, axis)
    named = [
        name
        for name, array in first.items()
        if array.ndim > 1 and counts_examples(array, axis.of_inputs, axis.sizes[0])
    ]
    length = {first[name].shape[time] for name in named}
    if len(named) != 1 or len(first) != 1 or min(length) < MIN_STEPS:
        raise Unclear(f"needs a single input of {MIN_STEPS} steps or more")
    if axis.answers[0].main.size >= axis.sizes[0] * min(length):
        raise Unclear("needs one prediction for a sequence")
    (name,), (steps,) = named, length
    others = other_rows(subject, axis)[name]
    alone = [_only(subject, first, name, others, time, step) for step in (0, steps - 1)]
    return steps if alone[0] else None, steps if alone[1] else None


def _only(subject: Subject, first: Inputs, name: str, others: Array, time: int, step: int) -> bool:
    """Whether the answers depend on one step of a sequence, and on no other; False where that cannot be seen."""
    without, within = others.copy(), first[name].copy()
    place = (slice(None),) * time + (step,)
    without[place], within[place] = first[name][place], others[place]
    if any(np.array_equal(one, first[name]) for one in (without, within)):  # such as a last step that is padding
        return False
    before = subject.ask(first)
    if before.change(subject.ask({name: within})) == 0 or before.change(subject.ask({name: without})):
        return False
    return not change_at_all(subject, first, {name: without})
