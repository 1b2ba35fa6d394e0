"""Finds the axis that counts the examples, and whether the answer to one depends on the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from diagnostics.facts.dependence import DependenceFacts, MixingFacts, SamenessFacts

from .operations import Operation, operations_seen
from .subject import Answer, Inputs, OutOfTime, Subject

# Numbers of examples to run, the best first: a size that no other axis has shows which axis counts examples.
SIZES = (7, 11, 13, 5, 6, 9, 10, 8, 4, 3)
LEAST = 4  # examples in a batch
SAME = 16  # numbers of an answer that may be a copy of its input
ALIKE = 1e-4  # of the answers' size: no more than rounding
CERTAIN = 10  # a change by the other examples is so many times one between two runs
SUM_OF_ONE = 1e-3  # how far a sum of probabilities may be from 1


class Unclear(Exception):
    """This cannot be measured; the message says why."""


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
    found = [axis for number in (0, 1) if (axis := _try_axis(subject, number)) is not None]
    if not found:
        raise Unclear("a part of the batch does not give that part of the predictions")
    return found


def _of_examples(subject: Subject, found: list[Axis]) -> Axis:
    """Return the axis that counts examples, and not positions."""
    if subject.batch_first:
        found = [axis for axis in found if axis.of_inputs == 0]
    if len(found) != 1:
        raise Unclear("which axis of the inputs counts the examples cannot be told")
    axis, target = found[0], subject.target
    if target is not None and (not target.ndim or target.shape[0] != axis.whole):
        raise Unclear("the loss does not compare one prediction with one target for each example")
    if not subject.batch_first and axis.answers[0].main.ndim > 2:
        raise Unclear("whether the first axis counts examples or positions cannot be told")
    return axis


def cut(inputs: Inputs, axis: Axis | int, rows: Tensor, whole: int) -> Inputs:
    """Take some of the examples, in this order; `rows`: integers (examples,)."""
    number = axis if isinstance(axis, int) else axis.of_inputs
    return {name: _cut(tensor, number, rows, whole) for name, tensor in inputs.items()}


def counts_examples(tensor: Tensor, axis: int, whole: int) -> bool:
    """Whether this input has one part for each example."""
    return _own_axis(tensor, axis, whole) is not None


def replaced(axis: Axis, kept: int | None = None) -> Tensor:
    """Return the rows of another batch of the first size: all but one are other examples than before.

    Args:
        axis: that was found.
        kept: the example that stays at its place; None for none.
    """
    size = axis.sizes[0]
    rows = torch.arange(size)
    others = rows + size if axis.whole >= 2 * size else rows.roll(-1)
    if kept is not None:
        others[kept] = kept
    return others


def compare_examples(subject: Subject, found: list[Axis]) -> DependenceFacts:
    """Replace all examples but one, and compare the answer to that one.

    Args:
        subject: the copy.
        found: what `axes` returned.

    Raises:
        Unclear: what counts the examples cannot be told, or all look the same.
        OutOfTime: the time is over.
    """
    axis = _of_examples(subject, found)
    if any(
        isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is None for m in subject.model.modules()
    ):
        raise Unclear("its batch norm keeps no running statistics, and mixes examples by design")
    size, before = axis.sizes[0], axis.answers[0].main
    first = cut(subject.inputs, axis, torch.arange(size), axis.whole)
    change, mixing = 0.0, _mixing(axis)
    for kept in (0, size - 1):
        inputs = cut(subject.inputs, axis, replaced(axis, kept), axis.whole)
        if all(torch.equal(inputs[name], first[name]) for name in first):
            raise Unclear("the examples of the batch are all alike")
        after = subject.ask(inputs).main
        if after.shape != before.shape:
            raise Unclear("the shape of the predictions depends on the values of the inputs")
        pair = (answer.select(axis.of_answers, kept) for answer in (before, after))
        one, other = pair
        change = max(change, float((one - other).abs().max()))
    if change != change or not bool(before.isfinite().all()):
        raise Unclear("the predictions are not finite")
    if not subject.batch_first and subject.target is None and (mixing is None or mixing.kind != "reshape"):
        raise Unclear("the target of the loss is not known, and rows may be parts of one example")
    scale = float(before.square().mean().sqrt())
    if change > ALIKE * scale and _noise(subject, first, before) > change / CERTAIN:
        raise Unclear("the same batch does not always give the same predictions")
    spread = float(before.std(axis.of_answers).square().mean().sqrt())
    return DependenceFacts(
        examples=axis.whole,
        compared=size,
        change=change,
        moved=_moved(subject, axis, first),
        sameness=_sameness(subject, axis),
        spread=spread,
        scale=scale,
        mixing=mixing,
        ends_in_it=mixing is not None and mixing.kind == "softmax" and _sums_to_one(axis),
        shuffled=subject.shuffled,
    )


def _noise(subject: Subject, inputs: Inputs, before: Tensor) -> float:
    """Return how far the answers to the same inputs differ from those of an earlier run."""
    again = subject.ask(inputs).main
    return float((again - before).abs().max()) if again.shape == before.shape else math.inf


def _moved(subject: Subject, axis: Axis, first: Inputs) -> float | None:
    """Return how far an answer changes when the examples come in the reverse order.

    None where it is random, or where other neighbours change it at its place, as those before it do that take the
    last place of an expert.
    """
    before = axis.answers[0].main
    back = torch.arange(axis.sizes[0]).flip(0)
    try:
        again = subject.ask(first, seed=1).main  # noise has its place in the batch; a state goes on
        if again.shape != before.shape or not torch.equal(again, before):
            return None
        after = subject.ask(cut(subject.inputs, axis, back, axis.whole)).main
        if after.shape != before.shape:
            return None
        moved = float((after.flip(axis.of_answers) - before).abs().max())
        if moved > ALIKE * _size(before) and not _is_by_place(subject, axis, back, after):
            return None
    except OutOfTime:
        raise
    except Exception:  # sequences that are packed must be sorted by length
        return None
    return moved


def _is_by_place(subject: Subject, axis: Axis, back: Tensor, after: Tensor) -> bool:
    """Return whether the answer to each example stays what it is at its new place when its neighbours are others.

    Copies of the example itself are the neighbours that compete with it most: for the last place of an expert.
    """
    others = replaced(axis).flip(0)
    for place in range(len(back)):
        copies = torch.full_like(back, int(back[place]))
        for neighbours in (copies, others.clone(), others.roll(1), others.roll(3)):
            neighbours[place] = back[place]
            answer = subject.ask(cut(subject.inputs, axis, neighbours, axis.whole)).main
            there = (one.select(axis.of_answers, place) for one in (answer, after))
            if answer.shape != after.shape or float((next(there) - next(there)).abs().max()) > ALIKE * _size(
                after
            ):
                return False
    return True


def _sameness(subject: Subject, axis: Axis) -> SamenessFacts | None:
    """Compare answers with the inputs that they are to give back, of a model whose target is its input."""
    if axis.of_inputs or axis.of_answers:
        return None
    answers = axis.answers[0].main.flatten(1)
    target = subject.target
    if target is None or target.shape[:1] != (axis.whole,) or target.numel() != axis.whole * answers.shape[1]:
        return None
    like = target.flatten(1)
    given = [t.flatten(1) for t in subject.inputs.values() if t.is_floating_point() and t.ndim > 1]
    if answers.shape[1] < SAME or not any(torch.equal(t, like) for t in given):
        return None
    answer, mean = answers.mean(0), like.float().mean(0).to(answers.device)
    differ = _size(like.float().to(answers.device) - mean)
    if not differ > 0:
        return None
    apart, level = _size(answer - mean) / differ, _size(mean) / differ
    return SamenessFacts(_size(answers - answer) / differ, apart, level, int(answers.shape[1]))


def _size(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def _try_axis(subject: Subject, number: int) -> Axis | None:
    """Run two parts of the batch, cut along this axis of the inputs; None if the answers do not follow."""
    first = next((t for t in subject.inputs.values() if t.ndim > number), None)
    whole = 0 if first is None else int(first.shape[number])
    others = {
        size
        for tensor in subject.inputs.values()
        for place, size in enumerate(tensor.shape)
        if place != _own_axis(tensor, number, whole)
    }
    sizes = [size for size in SIZES if size < whole and size not in others][:2]
    if whole < LEAST or len(sizes) < 2:
        return None
    answers, operations = [], []
    try:
        for size in sizes:
            inputs = cut(subject.inputs, number, torch.arange(size), whole)
            with operations_seen(subject.model, size) as seen:
                answers.append(subject.ask(inputs))
            operations.append(seen)
    except OutOfTime:
        raise
    except Exception:  # the model's own: a matrix for all nodes of a graph, a state for a whole batch
        return None
    one, other = (tuple(answer.main.shape) for answer in answers)
    following = _following(one, other, sizes)
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


def _own_axis(tensor: Tensor, axis: int, whole: int) -> int | None:
    """Return which axis of an input counts the examples; None if none does."""
    if tensor.ndim > axis:
        return axis if tensor.shape[axis] == whole else None
    return 0 if tensor.ndim == 1 and tensor.shape[0] == whole else None  # such as lengths, beside (time, batch)


def _cut(tensor: Tensor, axis: int, rows: Tensor, whole: int) -> Tensor:
    own = _own_axis(tensor, axis, whole)
    return tensor if own is None else tensor.index_select(own, rows.to(tensor.device))


def _sums_to_one(axis: Axis) -> bool:
    """Whether the answers, or their exponentials, sum to 1 over the examples and not over the classes."""
    main = axis.answers[0].main.movedim(axis.of_answers, 0).flatten(1)
    if main.shape[1] < 2:
        return False
    for values in (main, main.exp()):
        over_examples = (values.sum(0) - 1).abs().max()
        over_classes = (values.sum(1) - 1).abs().max()
        if bool(values.min() >= 0) and over_examples < SUM_OF_ONE < over_classes:
            return True
    return False


def _mixing(axis: Axis) -> MixingFacts | None:
    """Return the first operation that is proved to combine examples: at both sizes it works along their axis."""
    one, other = axis.operations
    if [(o.kind, o.name) for o in one] != [(o.kind, o.name) for o in other]:
        return None
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
    rest = [n for place, n in enumerate(one.shape) if place != along]
    if one.kind == "softmax":
        # A single column is a list that is ranked; a square is a matrix of pairs.
        return along if one.shape.count(size) == 1 and int(torch.tensor(rest).prod()) > 1 else None
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
    parts = one.rows.reshape(one.result).movedim(made, 0).reshape(size, -1)
    if bool((parts == parts[:, :1]).all()):
        return None
    return one.shape.index(size) if size in one.shape else 0


def _whole(one: tuple[int, ...], other: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    """Return the shape for the whole batch of a tensor with these shapes for its two parts."""
    size, second = axis.sizes
    return tuple(
        n // size * axis.whole if n != m and n * second == m * size else n for n, m in zip(one, other, strict=True)
    )
