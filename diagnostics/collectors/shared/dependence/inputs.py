"""Finds out whether any answer of a model depends on each of its inputs, or on one step of a sequence alone."""

from __future__ import annotations

import numpy as np

from diagnostics.facts.array import Array

from .examples import Axis, counts_examples, first_rows, other_rows
from .subject import Answer, Inputs, Subject, Unclear

MIN_STEPS = 4  # of a sequence
MOST_AXES = 3  # of an input that attention reads: rows, steps and features


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


def compare_steps(subject: Subject, axis: Axis) -> tuple[int | None, int | None]:
    """Replace all steps of a sequence but one, in each input that counts them, such as tokens and their mask.

    Returns:
        The number of steps, where those after the first change no answer, None where they do; and the same of
        those before the last, which a hidden state that is recreated at each step never reaches.

    Raises:
        Unclear: this cannot be tested.
        OutOfTime: the time is over.
    """
    time = 1 - axis.of_inputs
    first = first_rows(subject, axis)
    counting = [name for name, array in first.items() if counts_examples(array, axis.of_inputs, axis.sizes[0])]
    named = [name for name in counting if first[name].ndim > 1]
    length = {first[name].shape[time] for name in named}
    if len(length) != 1 or min(length) < MIN_STEPS:
        raise Unclear(f"needs inputs of the same {MIN_STEPS} steps or more")
    if any(
        _may_choose_the_first(first[name]) for name in counting if first[name].ndim == 1 and name in subject.tested
    ):
        raise Unclear("another input may say which step is to be used")
    (steps,) = length
    if not _is_one_for_each(axis, steps):
        raise Unclear("needs one prediction for a sequence")
    if (reader := subject.reads_steps(first, steps)) is None:
        raise Unclear("needs layers that read a sequence forward, or attention over its steps")
    others = other_rows(subject, axis)
    sequences = {name: first[name] for name in named}
    if reader == "attention":
        if any(array.ndim > MOST_AXES for array in sequences.values()):
            raise Unclear(f"needs inputs of at most {MOST_AXES} axes")
        return steps if _only(subject, first, sequences, others, time, 0) else None, None
    alone = [_only(subject, first, sequences, others, time, step) for step in (0, steps - 1)]
    return steps if alone[0] else None, steps if alone[1] else None


def _may_choose_the_first(array: Array) -> bool:
    """Whether the numbers of an input may be lengths of 1 or places of 0, in every row."""
    return array.dtype.kind in "iu" and int(array.max(initial=0)) <= 1


def _is_one_for_each(axis: Axis, steps: int) -> bool:
    """Whether a prediction has as many rows as there are examples, and no axis that could count the steps."""
    shape = list(axis.answers[0].main.shape)
    return shape.pop(axis.of_answers) == axis.sizes[0] and steps not in shape


def _only(subject: Subject, first: Inputs, sequences: Inputs, others: Inputs, time: int, step: int) -> bool:
    """Whether the answers depend on one step of a sequence, and on no other; False where that cannot be seen."""
    place = (slice(None),) * time + (step,)
    without = {name: others[name].copy() for name in sequences}
    within = {name: array.copy() for name, array in sequences.items()}
    for name, array in sequences.items():
        without[name][place], within[name][place] = array[place], others[name][place]
    if _equal(without, sequences):
        return False
    if _equal(within, sequences):
        if step:  # such as a last step that is padding
            return False
        within = {name: array.copy() for name, array in sequences.items()}  # such as a class token in each row
        for name, array in sequences.items():
            within[name][place] = array[(*place[:-1], 1)]
    before: Answer = subject.ask(first)
    if before.change(subject.ask({**first, **within})) == 0 or before.change(subject.ask({**first, **without})):
        return False
    return not change_at_all(subject, first, {**first, **without})


def _equal(one: Inputs, other: Inputs) -> bool:
    return all(np.array_equal(array, other[name]) for name, array in one.items())
