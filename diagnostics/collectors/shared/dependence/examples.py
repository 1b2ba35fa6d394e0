"""Finds the axis that counts the examples, and whether the answer to one depends on the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import DependenceFacts, MixingFacts, SamenessFacts

from .subject import Answer, Inputs, Operation, OutOfTime, Subject, Unclear

# Numbers of examples to run, the best first: a size that no other axis has shows which axis counts examples.
SIZES = (7, 11, 13, 5, 6, 9, 10, 8, 4, 3)
MIN_EXAMPLES = 4  # in a batch
MIN_ANSWERS = 32  # among fewer a dropout may have dropped none
MIN_NUMBERS = 16  # of an answer that may be meant to repeat its input
MAX_COMPONENTS = 8  # principal components of the inputs
REL_TOLERANCE = 1e-4  # of the answers' size: no more than rounding
CERTAIN = 10  # a change by the other examples is so many times one between two runs
SUM_OF_ONE = 1e-3  # how far a sum of probabilities may be from 1


@dataclass(frozen=True)
class Axis:
    """The axis that counts the examples.

    Attributes:
        of_inputs: in the inputs.
        of_answers: in the model's prediction.
        whole: its size in the batch.
        sizes: two smaller sizes that were tried.
        answers: the prediction at each of these.
        operations: what ran, at each of these.
    """

    of_inputs: int
    of_answers: int
    whole: int
    sizes: tuple[int, int]
    answers: tuple[Answer, Answer]
    operations: tuple[list[Operation], list[Operation]]


def axes(subject: Subject) -> list[Axis]:
    """Find the axes along which a shorter batch gives fewer answers: of a sequence's model there may be two.

    Raises:
        Unclear: there is none.
        OutOfTime: the time is over.
    """
    lengths = [array.shape[number] for array in subject.inputs.values() for number in subject.axes[: array.ndim]]
    if max(lengths, default=0) < MIN_EXAMPLES:
        raise Unclear(f"needs a batch of at least {MIN_EXAMPLES} examples")
    found = [axis for number in subject.axes if (axis := _try_axis(subject, number)) is not None]
    if not found:
        raise Unclear("the predictions for part of a batch do not match those for the whole batch")
    return found


def example_axis(subject: Subject, found: list[Axis]) -> Axis:
    """Return the axis that counts examples, and not positions.

    Args:
        subject: the model.
        found: what `axes` returned.

    Raises:
        Unclear: there is not one, or answers and targets do not belong to single examples.
    """
    batch_axis = _beside_next_tokens(subject)
    if batch_axis is None and subject.batch_first:
        batch_axis = 0
    if batch_axis is not None:
        found = [axis for axis in found if axis.of_inputs == batch_axis]
    if len(found) != 1:
        raise Unclear("it is not clear which axis of the inputs is the batch axis")
    axis, target = found[0], subject.target
    of_tokens = target is not None and batch_axis is not None and _has_token_targets(axis, target)
    if target is not None and not of_tokens and (not target.ndim or target.shape[0] != axis.whole):
        raise Unclear("the loss does not compare one prediction with one target for each example")
    if batch_axis is None and axis.answers[0].main.ndim > 2:
        raise Unclear("it is not clear whether the first axis counts examples or positions")
    return axis


def _beside_next_tokens(subject: Subject) -> int | None:
    """Return the axis of examples of a model that predicts the next token; None of others.

    Along the other axis, the targets are the tokens themselves, one place later.
    """
    tokens, target = next(iter(subject.inputs.values()), None), subject.target
    if tokens is None or tokens.ndim != 2 or tokens.dtype.kind not in "iu" or min(tokens.shape) < 2:
        return None
    if target is None or target.dtype.kind not in "iu" or target.size != tokens.size:
        return None
    next_tokens = target.reshape(tokens.shape)
    along = [np.array_equal(next_tokens[:-1], tokens[1:]), np.array_equal(next_tokens[:, :-1], tokens[:, 1:])]
    return along.index(False) if along.count(True) == 1 else None


def _has_token_targets(axis: Axis, target: Array) -> bool:
    """Whether each example has predictions at several positions, and the loss has one target for each of them."""
    shape = axis.answers[0].main.shape
    positions = math.prod(size for place, size in enumerate(shape[:-1]) if place != axis.of_answers)
    return len(shape) > 2 and axis.of_answers < len(shape) - 1 and target.size == axis.whole * positions


def cut(inputs: Inputs, axis: Axis | int, rows: Array, whole: int) -> dict[str, Array]:
    """Take some of the examples, in this order; `rows`: integers (examples,)."""
    number = axis if isinstance(axis, int) else axis.of_inputs
    return {
        name: array if (own := _own_axis(array, number, whole)) is None else array.take(rows, own)
        for name, array in inputs.items()
    }


def first_rows(subject: Subject, axis: Axis) -> dict[str, Array]:
    """Return a batch of the first size."""
    return cut(subject.inputs, axis, np.arange(axis.sizes[0]), axis.whole)


def other_rows(subject: Subject, axis: Axis, kept: int | None = None) -> dict[str, Array]:
    """Return another such batch; `kept`: the example that stays at its place, None for none."""
    return cut(subject.inputs, axis, _others(axis, kept), axis.whole)


def counts_examples(array: Array, axis: int, whole: int) -> bool:
    """Whether this input has one part for each example."""
    return _own_axis(array, axis, whole) is not None


def compare_examples(subject: Subject, axis: Axis) -> DependenceFacts:
    """Replace all examples but one, and compare the answer to that one.

    Args:
        subject: the model.
        axis: what `example_axis` returned.

    Raises:
        Unclear: all examples look the same, or the answers are not finite.
        OutOfTime: the time is over.
    """
    if (why := subject.mixes_by_design()) is not None:
        raise Unclear(why)
    size, before = axis.sizes[0], axis.answers[0].main
    first, change, mixing = first_rows(subject, axis), 0.0, _mixing(subject, axis)
    for kept in (0, size - 1):
        inputs = other_rows(subject, axis, kept)
        if all(np.array_equal(inputs[name], first[name]) for name in first):
            raise Unclear("all examples in the batch are identical")
        after = subject.ask(inputs).main
        if after.shape != before.shape:
            raise Unclear("the shape of the predictions depends on the values of the inputs")
        change = max(change, _apart(after.take(kept, axis.of_answers), before.take(kept, axis.of_answers)))
    if math.isnan(change) or not np.isfinite(before).all():
        raise Unclear("the predictions are not finite")
    if not subject.batch_first and subject.target is None and (mixing is None or mixing.kind != "reshape"):
        raise Unclear("the target of the loss is not known, and rows may be parts of one example")
    scale = _size(before)
    if change > REL_TOLERANCE * scale and _noise(subject, first, before) > change / CERTAIN:
        raise Unclear("the same batch does not always give the same predictions")
    return DependenceFacts(
        examples=axis.whole,
        compared=size,
        change=change,
        sameness=_sameness(subject, axis),
        spread=_size(before.std(axis.of_answers, ddof=1)),
        scale=scale,
        mixing=mixing,
        ends_in_it=mixing is not None and mixing.kind == "softmax" and _sums_to_one(axis.answers[0], axis),
    )


def moved_by_place(subject: Subject, axis: Axis) -> float | None:
    """Return how far an answer changes when the examples come in the reverse order.

    None where it is random, or where other neighbours change it at its place, as those before it do that take the
    last place of an expert.

    Raises:
        OutOfTime: the time is over.
    """
    before, back = axis.answers[0].main, np.arange(axis.sizes[0])[::-1]
    try:
        again = subject.ask(first_rows(subject, axis), seed=1).main  # noise has its place; a state goes on
        if not np.array_equal(again, before):
            return None
        after = subject.ask(cut(subject.inputs, axis, back, axis.whole)).main
        if after.shape != before.shape:
            return None
        moved = _apart(np.flip(after, axis.of_answers), before)
        if moved > REL_TOLERANCE * _size(before) and not _is_by_place(subject, axis, back, after):
            return None
    except OutOfTime:
        raise
    except Exception:  # sequences that are packed must be sorted by length
        return None
    return moved


def dropped_answers(subject: Subject) -> float | None:
    """Return the share of answers that are exactly 0 in training mode alone, the lesser of two runs.

    None where the target is not known, a zero is among the answers in evaluation mode, or there are few.

    Raises:
        OutOfTime: the time is over.
    """
    target, plain = subject.target, subject.ask(subject.inputs).main
    if target is None or target.shape[:1] != plain.shape[:1] or plain.size < MIN_ANSWERS or (plain == 0).any():
        return None
    with subject.restored():
        trained = [subject.ask(subject.inputs, training=True, seed=seed).main for seed in (0, 1)]
    if any(answers.shape != plain.shape for answers in trained):
        return None
    return min(float((answers == 0).mean()) for answers in trained)


def _others(axis: Axis, kept: int | None = None) -> Array:
    """Return the rows of another batch of the first size: all but one are other examples than before."""
    size = axis.sizes[0]
    rows = np.arange(size)
    others: Array = rows + size if axis.whole >= 2 * size else np.roll(rows, -1)
    if kept is not None:
        others[kept] = kept
    return others


def _noise(subject: Subject, inputs: Inputs, before: Array) -> float:
    """Return how far the answers to the same inputs differ from those of an earlier run."""
    again = subject.ask(inputs).main
    return _apart(again, before) if again.shape == before.shape else math.inf


def _is_by_place(subject: Subject, axis: Axis, back: Array, after: Array) -> bool:
    """Return whether the answer to each example stays what it is at its new place when its neighbours are others.

    Copies of the example itself are the neighbours that compete with it most: for the last place of an expert.
    """
    others = _others(axis)[::-1]
    for place, row in enumerate(back):
        for neighbours in (np.full_like(back, row), others.copy(), np.roll(others, 1), np.roll(others, 3)):
            neighbours[place] = row
            answer = subject.ask(cut(subject.inputs, axis, neighbours, axis.whole)).main
            if answer.shape != after.shape:
                return False
            there = (one.take(place, axis.of_answers) for one in (answer, after))
            if _apart(*there) > REL_TOLERANCE * _size(after):
                return False
    return True


def _sameness(subject: Subject, axis: Axis) -> SamenessFacts | None:
    """Compare answers with the inputs that they are to give back, of a model whose target is its input.

    Where no target is known, as in a train step of the script's own, the only input may be the target.
    """
    if axis.of_inputs or axis.of_answers:
        return None
    answers, target = _flat(axis.answers[0].main), subject.target
    given = [_flat(array) for array in subject.inputs.values() if array.dtype.kind == "f" and array.ndim > 1]
    if target is not None:
        if target.shape[:1] != (axis.whole,) or target.size != axis.whole * answers.shape[1]:
            return None
        like = _flat(target)
        if not any(np.array_equal(array, like) for array in given):
            return None
    elif len(subject.inputs) == len(given) == 1 and given[0].shape == (axis.whole, answers.shape[1]):
        like = given[0]
    else:
        return None
    return sameness(answers, like, known=target is not None)


def sameness(answers: Array, like: Array, *, known: bool) -> SamenessFacts | None:
    """Compare answers with the inputs that they are to give back; None if they are short, or all inputs equal.

    Args:
        answers: (rows, …) of a model.
        like: as many numbers for each of these rows or more rows.
        known: whether the loss is known to compare them.
    """
    answers, like = _flat(answers), _flat(like)
    if answers.shape[1] < MIN_NUMBERS:
        return None
    answer, mean = answers.mean(0), like.mean(0)
    differ = _size(like - mean)
    if not differ > 0:
        return None
    components = min(MAX_COMPONENTS, len(like) // 8, answers.shape[1] // 4)
    return SamenessFacts(
        _size(answers - answer) / differ,
        _size(answer - mean) / differ,
        _size(mean) / differ,
        answers.shape[1],
        known,
        _kept_by(like, components) if components else None,
        components,
    )


def _kept_by(rows: Array, components: int) -> float | None:
    """Return the share of the squares of every second row that principal components of the others keep."""
    mean = rows[::2].mean(0)
    fitted, others = rows[::2] - mean, rows[1::2] - mean
    if not np.isfinite(rows).all() or not others.any():
        return None
    axes = np.linalg.svd(fitted, full_matrices=False)[2][:components]
    return float(np.square(others @ axes.T).sum() / np.square(others).sum())


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1).astype(np.float64)


def _size(values: Array) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _apart(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())


def _try_axis(subject: Subject, number: int) -> Axis | None:
    """Run two parts of the batch, cut along this axis of the inputs; None if the answers do not follow."""
    first = next((array for array in subject.inputs.values() if array.ndim > number), None)
    whole = 0 if first is None else int(first.shape[number])
    others = {
        size
        for array in subject.inputs.values()
        for place, size in enumerate(array.shape)
        if place != _own_axis(array, number, whole)
    }
    sizes = [size for size in SIZES if size < whole and size not in others][:2]
    if whole < MIN_EXAMPLES or len(sizes) < 2:
        return None
    answers, operations = [], []
    try:
        for size in sizes:
            inputs = cut(subject.inputs, number, np.arange(size), whole)
            with subject.operations_seen(size) as seen:
                answers.append(subject.ask(inputs))
            operations.append(seen)
    except OutOfTime:
        raise
    except Exception:  # the model's own: a matrix for all nodes of a graph, a state for a whole batch
        if len(subject.axes) == 1:
            raise
        return None
    following = _following(answers[0].main.shape, answers[1].main.shape, sizes)
    if following is None:
        return None
    return Axis(
        number, following, whole, (sizes[0], sizes[1]), (answers[0], answers[1]), (operations[0], operations[1])
    )


def _following(one: tuple[int, ...], other: tuple[int, ...], sizes: list[int]) -> int | None:
    """Return the only axis in which two shapes differ, if it has these sizes."""
    if len(one) != len(other):
        return None
    differing = [place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
    if len(differing) != 1 or [one[differing[0]], other[differing[0]]] != sizes:
        return None
    return differing[0]


def _own_axis(array: Array, axis: int, whole: int) -> int | None:
    """Return which axis of an input counts the examples; None if none does."""
    if array.ndim > axis:
        return axis if array.shape[axis] == whole else None
    return 0 if array.ndim == 1 and array.shape[0] == whole else None  # such as lengths, beside (time, batch)


def _sums_to_one(answer: Answer, axis: Axis) -> bool:
    """Whether the answers, or their exponentials, sum to 1 over the examples and not over the classes."""
    main = np.moveaxis(answer.main, axis.of_answers, 0)
    main = main.reshape(len(main), -1)
    if main.shape[1] < 2:
        return False
    with np.errstate(over="ignore"):
        for values in (main, np.exp(main)):
            over_examples, over_classes = np.abs(values.sum(0) - 1).max(), np.abs(values.sum(1) - 1).max()
            if values.min() >= 0 and over_examples < SUM_OF_ONE < over_classes:
                return True
    return False


def _mixing(subject: Subject, axis: Axis) -> MixingFacts | None:
    """Return the first operation that is proved to combine examples: at both sizes it works along their axis."""
    one, other = axis.operations
    if [(o.kind, o.name) for o in one] == [(o.kind, o.name) for o in other]:
        along = [_along(first, second, axis) for first, second in zip(one, other, strict=True)]
        attends_elsewhere = any(o.kind == "attention" and p is None for o, p in zip(one, along, strict=True))
        for operation, second, place in zip(one, other, along, strict=True):
            if place is None or (operation.kind == "attention" and attends_elsewhere):
                continue  # one that attends along rows and along columns does so on purpose
            return MixingFacts(
                kind=operation.kind,
                name=operation.name,
                shape=_whole(operation.shape, second.shape, axis),
                axis=place,
                result=_whole(operation.result, second.result, axis),
                where=operation.where,
            )
    if not subject.shows_softmax and all(_sums_to_one(answer, axis) for answer in axis.answers):
        first, later = (answer.main.shape for answer in axis.answers)
        return MixingFacts("softmax", "softmax", _whole(first, later, axis), axis.of_answers)
    return None


def _along(one: Operation, other: Operation, axis: Axis) -> int | None:
    """Return the axis of an operation's input that counts examples, if it combines them; None if it does not."""
    size, second = axis.sizes
    if len(one.shape) != len(other.shape):
        return None
    if one.kind == "reshape":
        return _mixed_by_reshape(one, other, axis)
    along = one.axis
    if one.shape[along] != size or other.shape[along] != second:
        return None
    if one.kind == "softmax":
        # A single column is a list that is ranked; a square is a matrix of pairs.
        return along if one.shape.count(size) == 1 and math.prod(one.shape) > size else None
    return along


def _mixed_by_reshape(one: Operation, other: Operation, axis: Axis) -> int | None:
    size, second = axis.sizes
    if one.rows is None or other.rows is None or len(one.result) != len(other.result):
        return None
    if one.result.count(size) != 1 or other.result.count(second) != 1:
        return None
    made = one.result.index(size)
    if other.result.index(second) != made:
        return None
    parts = np.moveaxis(one.rows.reshape(one.result), made, 0).reshape(size, -1)
    if (parts == parts[:, :1]).all():
        return None
    return one.shape.index(size) if size in one.shape else 0


def _whole(one: tuple[int, ...], other: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    """Return the shape for the whole batch of a tensor with these shapes for its two parts."""
    size, second = axis.sizes
    return tuple(
        n // size * axis.whole if n != m and n * second == m * size else n for n, m in zip(one, other, strict=True)
    )
