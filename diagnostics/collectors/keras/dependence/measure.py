"""Measures what the answers of a Keras model depend on: other examples, later tokens, each input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import keras
import numpy as np

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.shared.arrays import LABEL_NAMES
from diagnostics.facts.dependence import REFUSED, DependenceFacts, FutureFacts, MixingFacts, SamenessFacts

from .kept_batch import predicts_tokens
from .linear import find_linear
from .operations import Reshape, reshapes_seen, summaries_seen
from .subject import Answer, Inputs, KerasSubject, OutOfTime, Unclear

SIZES = (7, 11, 13, 5, 6, 9, 10, 8, 4, 3)  # of examples to run: one that no other axis has, the best first
LEAST = 4  # examples in a batch
SUM_OF_ONE = 1e-3  # how far a sum of probabilities may be from 1
NOISE = 0.05  # added to each weight, times its size: opens a gate that starts at zero
ROWS = 8  # texts that are run
LEAST_LENGTH, LEAST_COMPARED, LEAST_KINDS = 4, 8, 3  # positions; targets that equal the next token; kinds of them
COPIED = 0.5  # share of targets that may equal the token at their own position: more, and it repeats
PLACES = (0.25, 0.5, 0.75, 1.0)  # of the positions that count
FEW = 32  # answers; among fewer a dropout may have dropped none
REPEATED = 16  # numbers of an answer that may be meant to repeat its input

T = TypeVar("T")


@dataclass(frozen=True)
class _Parts:
    """The answers to two parts of the batch.

    Attributes:
        sizes: examples in each.
        answers: to each.
        axis: of the answers that counts the examples.
        reshapes: that ran, for each.
    """

    sizes: tuple[int, int]
    answers: tuple[Answer, Answer]
    axis: int
    reshapes: tuple[list[Reshape], list[Reshape]]


def measure(subject: KerasSubject) -> DependenceFacts:
    """Measure each part that can be measured; what the model raises is a reason, not an error."""
    why_not: dict[str, str] = {}
    with own_run(), own_warnings_ignored():
        parts = _part(why_not, "examples", lambda: _parts(subject))
        if parts is None:
            why_not |= dict.fromkeys(("inputs", "linear"), why_not["examples"])
            facts = DependenceFacts()
        else:
            facts = _part(why_not, "examples", lambda: _compare_examples(subject, parts)) or DependenceFacts()
            inputs = _part(why_not, "inputs", lambda: _compare_inputs(subject, parts))
            linear = _part(why_not, "linear", lambda: find_linear(subject, parts.sizes[0]))
            facts = replace(facts, inputs=inputs or {}, linear=linear)
        future = _part(why_not, "future", lambda: _compare_future(subject))
        dropped = _part({}, "dropout", lambda: _dropped(subject))
    return replace(facts, future=future, dropped=dropped, why_not=why_not)


def _part(why_not: dict[str, str], name: str, work: Callable[[], T]) -> T | None:
    try:
        return work()
    except Unclear as reason:
        why_not[name] = str(reason)
    except OutOfTime:
        why_not[name] = "the time for it was over"
    except Exception as error:  # of the model, which may not take such a batch
        why_not[name] = f"{REFUSED} {type(error).__name__}"
    return None


def _dropped(subject: KerasSubject) -> float | None:
    """Return the share of answers that are exactly 0 in training mode alone, the lesser of two runs.

    None as in `DependenceFacts`.
    """
    target, plain = subject.target, subject.ask(subject.inputs).main
    if target is None or len(target) != len(plain) or plain.size < FEW or (plain == 0).any():
        return None
    trained = [subject.ask(subject.inputs, training=True).main for _ in range(2)]
    if any(answers.shape != plain.shape for answers in trained):
        return None
    return min(float((answers == 0).mean()) for answers in trained)


def _rows(subject: KerasSubject, rows: np.ndarray) -> Inputs:
    return {name: array[rows] for name, array in subject.inputs.items()}


def _whole(subject: KerasSubject) -> int:
    return min(map(len, subject.inputs.values()))


def _replaced(subject: KerasSubject, size: int, kept: int | None = None) -> np.ndarray:
    """Return the rows of another batch of this size: all but `kept` are other examples than before."""
    rows = np.arange(size)
    others = rows + size if _whole(subject) >= 2 * size else np.roll(rows, -1)
    if kept is not None:
        others[kept] = kept
    return others


def _parts(subject: KerasSubject) -> _Parts:
    """Run two parts of the batch.

    Raises:
        Unclear: the answers do not follow, or the same rows get another answer each time.
        OutOfTime: the time is over.
    """
    whole = _whole(subject)
    others = {size for array in subject.inputs.values() for size in array.shape[1:]}
    sizes = [size for size in SIZES if size < whole and size not in others][:2]
    if whole < LEAST or len(sizes) < 2:
        raise Unclear(f"needs a batch of at least {LEAST} examples")
    answers, reshapes = [], []
    for size in sizes:
        with reshapes_seen() as seen:
            answers.append(subject.ask(_rows(subject, np.arange(size))))
        reshapes.append(seen)
    one, other = (answer.main.shape for answer in answers)
    axes = [axis for axis, pair in enumerate(zip(one, other, strict=False)) if pair == (sizes[0], sizes[1])]
    same = [axis for axis, pair in enumerate(zip(one, other, strict=False)) if pair[0] == pair[1]]
    if len(one) != len(other) or len(axes) != 1 or len(same) != len(one) - 1:
        raise Unclear("a part of the batch does not give that part of the predictions")
    if subject.ask(_rows(subject, np.arange(sizes[0]))).change(answers[0]) != 0:
        raise Unclear("the predictions are random in inference mode")
    return _Parts((sizes[0], sizes[1]), (answers[0], answers[1]), axes[0], (reshapes[0], reshapes[1]))


def _compare_examples(subject: KerasSubject, parts: _Parts) -> DependenceFacts:
    """Replace all examples but one, and compare the answer to that one.

    Raises:
        Unclear: all examples look the same, or the answers are not finite.
        OutOfTime: the time is over.
    """
    size, before = parts.sizes[0], parts.answers[0].main
    first, change = _rows(subject, np.arange(size)), 0.0
    if not np.isfinite(before).all():
        raise Unclear("the predictions are not finite")
    for kept in (0, size - 1):
        inputs = _rows(subject, _replaced(subject, size, kept))
        if all(np.array_equal(inputs[name], first[name]) for name in first):
            raise Unclear("the examples of the batch are all alike")
        after = subject.ask(inputs).main
        if after.shape != before.shape:
            raise Unclear("the shape of the predictions depends on the values of the inputs")
        difference = np.abs(after.take(kept, parts.axis) - before.take(kept, parts.axis))
        change = max(change, float(difference.max()))
    if math.isnan(change):
        raise Unclear("the predictions are not finite")
    mixing = _mixing(subject, parts)
    return DependenceFacts(
        examples=_whole(subject),
        compared=size,
        change=change,
        spread=float(np.sqrt(np.square(before.std(parts.axis)).mean())),
        scale=float(np.sqrt(np.square(before).mean())),
        mixing=mixing,
        ends_in_it=mixing is not None and mixing.kind == "softmax",
        sameness=_sameness(subject, parts),
    )


def _sameness(subject: KerasSubject, parts: _Parts) -> SamenessFacts | None:
    """Compare answers with the inputs that they are to give back, of a model whose target is its input."""
    answers, target = parts.answers[0].main, subject.target
    if parts.axis or target is None:
        return None
    answers, like = (part.reshape(len(part), -1).astype(np.float64) for part in (answers, target))
    given = [array.reshape(len(array), -1) for array in subject.inputs.values() if array.dtype.kind == "f"]
    if answers.shape[1] < REPEATED or answers.shape[1] != like.shape[1]:
        return None
    if not any(np.array_equal(array, like) for array in given):
        return None
    answer, mean = answers.mean(0), like.mean(0)
    differ = _size(like - mean)
    if not differ > 0:
        return None
    return SamenessFacts(
        _size(answers - answer) / differ, _size(answer - mean) / differ, _size(mean) / differ, like.shape[1]
    )


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _mixing(subject: KerasSubject, parts: _Parts) -> MixingFacts | None:
    """Return the operation that is proved to combine examples at both sizes."""
    (size, second), whole = parts.sizes, _whole(subject)
    one, other = parts.reshapes
    for first, later in zip(one, other, strict=False) if len(one) == len(other) else ():
        if not (first.mixes(size) and later.mixes(second)) or len(first.shape) != len(later.shape):
            continue
        if first.result.index(size) == later.result.index(second):
            shape, result = (tuple(whole if n == size else n for n in s) for s in (first.shape, first.result))
            return MixingFacts("reshape", "reshape", shape, first.shape.index(size), result)
    if all(_sums_to_one(answer.main, parts.axis) for answer in parts.answers):
        shape = tuple(whole if n == parts.axis else s for n, s in enumerate(parts.answers[0].main.shape))
        return MixingFacts("softmax", "softmax", shape, parts.axis)
    return None


def _sums_to_one(answers: np.ndarray, axis: int) -> bool:
    """Whether the answers, or their exponentials, sum to 1 over the examples and not over the classes."""
    main = np.moveaxis(answers, axis, 0).reshape(answers.shape[axis], -1)
    if main.shape[1] < 2:
        return False
    with np.errstate(over="ignore"):
        for values in (main, np.exp(main)):
            over_examples, over_classes = np.abs(values.sum(0) - 1).max(), np.abs(values.sum(1) - 1).max()
            if values.min() >= 0 and over_examples < SUM_OF_ONE < over_classes:
                return True
    return False


def _compare_inputs(subject: KerasSubject, parts: _Parts) -> dict[str, float]:
    """Replace each input alone by that of other examples; return the largest change of any answer.

    Raises:
        Unclear: fewer than two inputs can be tested, or the model has losses of its own, which may use them.
        OutOfTime: the time is over.
    """
    size = parts.sizes[0]
    first, others = _rows(subject, np.arange(size)), _rows(subject, _replaced(subject, size))
    tested = [name for name in first if not np.array_equal(first[name], others[name])]
    if len(tested) < 2:
        raise Unclear("needs two inputs that differ between examples")
    before = subject.ask(first)
    changes = {name: before.change(subject.ask({**first, name: others[name]})) for name in tested}
    for name in [name for name, change in changes.items() if change == 0]:
        if subject.declared and name not in LABEL_NAMES and not _is_target(subject, name):
            changes[name] = _change_at_all(subject, first, {**first, name: others[name]})
        else:
            del changes[name]
    if subject.adds_losses or not _has_plain_loss(subject.model):
        raise Unclear("the model has a loss of its own, which may use what the predictions do not")
    return changes


def _change_at_all(subject: KerasSubject, first: Inputs, other: Inputs) -> float:
    """Ask in training mode, where an input may be used alone, and with other weights."""
    trained = subject.ask(first, training=True).change(subject.ask(other, training=True))
    if trained:
        return trained
    values = subject.other_values(NOISE)
    return subject.ask(first, values=values).change(subject.ask(other, values=values))


def _has_plain_loss(model: keras.Model) -> bool:
    kind = type(model)
    plain = kind.train_step is keras.Model.train_step and kind.compute_loss is keras.Model.compute_loss
    return plain and model.loss is not None


def _is_target(subject: KerasSubject, name: str) -> bool:
    given, target = subject.inputs[name], subject.target
    return target is not None and given.size == target.size and bool((given.ravel() == target.ravel()).all())


def _compare_future(subject: KerasSubject) -> FutureFacts:
    """Replace one token, and compare the answer at the position before, which is to predict it.

    Raises:
        Unclear: the model is not known to predict the next token, or may read ahead on purpose.
        OutOfTime: the time is over.
    """
    name, counted = _tokens(subject)
    tokens = subject.inputs[name]
    length = tokens.shape[1]
    rows = next((r for r in range(min(ROWS, len(tokens)), 1, -1) if r != length), 0)
    if rows < 2:
        raise Unclear("the batch holds a single text")
    if len(subject.inputs) > 1:
        raise Unclear("it takes further inputs for each text")
    inputs = {name: tokens[:rows]}
    with summaries_seen(rows, length) as summaries:
        first = subject.ask(inputs)
    if summaries:
        raise Unclear(f"{summaries[0]} sums up a text, as an autoencoder does, which may read all of it")
    if subject.ask(inputs).change(first) != 0:
        raise Unclear("the predictions are random in inference mode")
    before = first.main
    if before.ndim != 3 or before.shape[:2] != (rows, length) or first.others or subject.adds_losses:
        raise Unclear("it gives no single prediction for each position")
    predicted = np.flatnonzero(counted[:rows].all(0)).tolist()
    if not predicted:
        raise Unclear("the loss leaves out a part of each position")
    kinds, changes = np.unique(tokens), list[tuple[float, int]]()

    def change_at(position: int, replaced: slice) -> float:
        others = inputs[name].copy()
        others[:, replaced] = kinds[(np.searchsorted(kinds, others[:, replaced]) + 1) % len(kinds)]
        after = subject.ask({name: others}).main
        return float(np.abs(after[:, position] - before[:, position]).max())

    for position in sorted({predicted[int(part * (len(predicted) - 1))] for part in PLACES}):
        changes.append((change_at(position, slice(position + 1, position + 2)), position))
    change, position = max(changes)
    if not np.isfinite(before).all() or math.isnan(change):
        raise Unclear("the predictions are not finite")
    spread = float(np.sqrt(np.square(before.reshape(rows * length, -1).std(0)).mean()))
    past = change_at(position, slice(0, position)) if position else None
    return FutureFacts(change, spread, position, length, name, past)


def _tokens(subject: KerasSubject) -> tuple[str, np.ndarray]:
    """Return the only input whose next tokens are the targets, and which of these count (n, length - 1)."""
    target = subject.target
    if target is None or subject.weighted or not predicts_tokens(subject.model):
        raise Unclear("the loss is not known to be a cross entropy over next tokens")
    ignored = getattr(subject.model.loss, "ignore_class", None)
    found = [
        (name, counted)
        for name, array in subject.inputs.items()
        if array.ndim == 2 and array.shape[1] >= LEAST_LENGTH
        if (counted := _counted(array, target, ignored)) is not None
    ]
    if len(found) != 1:
        raise Unclear("the targets are not the next tokens of one of the inputs")
    return found[0]


def _counted(tokens: np.ndarray, target: np.ndarray, ignored: int | None) -> np.ndarray | None:
    """Return which next tokens the loss counts; None if the targets are no next tokens."""
    following, here = tokens[:, 1:], tokens[:, :-1]
    if target.size == tokens.size:
        wanted = target.reshape(tokens.shape)[:, :-1]
    elif target.size == following.size:
        wanted = target.reshape(following.shape)
    else:
        return None
    counted = np.ones(wanted.shape, bool) if ignored is None else wanted != ignored
    if counted.sum() < LEAST_COMPARED or len(np.unique(wanted[counted])) < LEAST_KINDS:
        return None
    if not (wanted == following)[counted].all() or (wanted == here)[counted].mean() >= COPIED:
        return None
    return counted
