"""Finds out whether any answer of a model depends on each of its inputs."""

from __future__ import annotations

import numpy as np

from .examples import Axis, counts_examples, first_rows, other_rows
from .subject import Inputs, Subject, Unclear


def compare_inputs(subject: Subject, axis: Axis) -> tuple[dict[str, float], list[str]]:
    """Replace each input alone by that of other examples.

    An input is replaced in evaluation mode first; if nothing changes, in training mode, where it may be used
    alone, and with other weights, since a branch that starts at zero passes nothing on yet.

    Returns:
        The largest change of any answer; and the inputs that change one with these weights, in evaluation mode.

    Raises:
        Unclear: fewer than two inputs can be tested.
        OutOfTime: the time is over.
    """
    first, others = first_rows(subject, axis), other_rows(subject, axis)
    tested = [
        name
        for name, array in subject.inputs.items()
        if counts_examples(array, axis.of_inputs, axis.whole) and not np.array_equal(first[name], others[name])
    ]
    if len(tested) < 2:
        raise Unclear("needs two inputs that differ between examples")
    before = subject.ask(first)
    changes = {name: before.change(subject.ask({**first, name: others[name]})) for name in tested}
    in_use = [name for name, change in changes.items() if change > 0]
    for name in [name for name, change in changes.items() if change == 0]:
        if name in subject.tested:
            changes[name] = change_at_all(subject, first, {**first, name: others[name]})
        else:
            del changes[name]
    return changes, in_use


def used_of_first(subject: Subject, axis: Axis, in_use: list[str]) -> tuple[str, ...]:
    """Return the inputs of which that of the first example alone changes answers.

    Raises:
        OutOfTime: the time is over.
    """
    first, but_first = first_rows(subject, axis), other_rows(subject, axis, 0)
    before = subject.ask(first)
    return tuple(
        name
        for name in in_use
        if name in subject.tested
        and not np.array_equal(first[name], but_first[name])
        and before.change(subject.ask({**first, name: but_first[name]})) == 0
    )


def change_at_all(subject: Subject, first: Inputs, other: Inputs) -> float:
    """Return a change of answers in training mode, or else with other weights; 0 if there is none.

    Raises:
        OutOfTime: the time is over.
    """
    with subject.restored():
        for seed in subject.seeds:
            before = subject.ask(first, training=True, seed=seed)
            if change := before.change(subject.ask(other, training=True, seed=seed)):
                return change
        subject.add_noise()
        return subject.ask(first).change(subject.ask(other))
