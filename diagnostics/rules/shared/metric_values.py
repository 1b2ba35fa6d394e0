"""Computes common metrics from predictions and targets, and finds the mistake that explains a reported number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.metrics import Evaluation
from diagnostics.facts.where import Where

ROWS = 32  # targets that count, at least
APART, MEAN_APART = (0.01, 0.01), (0.02, 0.05)  # of a mistake, or a mean over batches; see `least_gap`
COARSE = 1e-3  # of the value: how far a mistake's value may lie from one that was rounded
NEAR_HALF = 0.2  # of a logit from 0.5
BATCHES = 3  # calls of one evaluation, at least
LARGEST_BROADCAST = 4096  # rows whose n x n differences are made
TOP: Final = (2, 3, 5, 10)

Metric = str
NAMES: Final[Mapping[str, Metric]] = {
    **dict.fromkeys(("accuracy", "acc", "accuracy_score", "binary_accuracy"), "accuracy"),
    **dict.fromkeys(("categorical_accuracy", "sparse_categorical_accuracy"), "accuracy"),
    **dict.fromkeys(("f1", "f1_score", "f1score", "f1_m", "get_f1", "macro_f1", "f1_macro"), "f1"),
    **dict.fromkeys(("micro_f1", "f1_micro", "weighted_f1", "f1_weighted"), "f1"),
    **dict.fromkeys(
        ("precision", "precision_m", "precision_score", "precision_macro", "macro_precision"), "precision"
    ),
    **dict.fromkeys(("recall", "recall_m", "recall_score", "recall_macro", "macro_recall"), "recall"),
    **dict.fromkeys(("r2", "r2_score", "r_squared", "r_square", "rsquare", "coeff_determination"), "r2"),
    **dict.fromkeys(("rmse", "root_mean_squared_error", "root_mean_square_error"), "rmse"),
    **dict.fromkeys(("mse", "mean_squared_error"), "mse"),
    **dict.fromkeys(("mae", "mean_absolute_error"), "mae"),
    **dict.fromkeys(("perplexity", "ppl"), "perplexity"),
    **dict.fromkeys(("iou", "iou_score", "mean_iou", "miou", "jaccard", "jaccard_score"), "iou"),
}
"""What metrics are called in reports."""

SHARES: Final = ("accuracy", "f1", "precision", "recall", "iou")  # between 0 and 1, or in percent
NUMERIC: Final = ("r2", "rmse", "mse", "mae")
NO_MEANS: Final = ("f1", "precision", "recall", "iou", "r2", "rmse")  # whose mean over batches is another number
_PREFIXES = re.compile(r"^(eval|test|val|validation|valid|dev|predict)_")
_NUMBERED = re.compile(r"_\d+$")
_OF_WHAT = re.compile(
    r"^(?:(?:tokens?|words?|chars?|characters?|tags?|labels?|pixels?|masked|mean|overall|total|next)_)+"
)

Values = dict[str, float]
"""By the way of averaging."""


@dataclass(frozen=True)
class Contradiction:
    """A reported metric that does not match the predictions.

    Attributes:
        name: the name under which it was reported.
        metric: the kind of metric.
        reported: the number.
        recomputed: the metric computed from the predictions.
        mistake: the known mistake that leads to the reported number; None if it is unknown.
        rows: the number of targets included.
        is_plain: whether each row has scores for several classes, and a single class as its target.
        where: the line that computed the number; None if it is not known.
    """

    name: str
    metric: Metric
    reported: float
    recomputed: float
    mistake: str | None
    rows: int
    is_plain: bool = False
    where: Where | None = None


def metric_of(name: str) -> Metric | None:
    """Return which metric a name in a report means; None if we do not know."""
    bare = _NUMBERED.sub("", _PREFIXES.sub("", name.lower()))
    return NAMES.get(bare) or NAMES.get(_OF_WHAT.sub("", bare))


def contradictions(evaluations: Sequence[Evaluation]) -> Iterator[Contradiction]:
    """Yield, for each name, the latest number that contradicts its evaluation, unless another one was right.

    A mistake counts if it gives each of the reported numbers.
    """
    for name in dict.fromkeys(name for one in evaluations for name in one.reported):
        judged = [found for one in evaluations if name in one.reported for found in _judged(name, one)]
        found = [one for one in judged if one is not None]
        if found and len(found) == len(judged):
            same = {one.mistake for one in found}
            yield found[-1] if len(same) == 1 else replace(found[-1], mistake=None)


def _judged(name: str, evaluation: Evaluation) -> Iterator[Contradiction | None]:
    """Yield None if a reported number is right, or how it is wrong; nothing if that is not known."""
    metric, reported = metric_of(name), float(evaluation.reported[name])
    if metric is None or not np.isfinite(reported):
        return
    right, rows = _right(metric, evaluation)
    if not right or rows < ROWS:
        return
    percent = metric in SHARES and reported > 1
    value, tolerance = (
        (reported / 100, _tolerance(reported) / 100) if percent else (reported, _tolerance(reported))
    )
    wide = max(tolerance, 0.02 * abs(value)) if metric == "perplexity" else tolerance
    if any(abs(value - one) <= wide for one in right):
        yield None
        return
    strict = min(tolerance, COARSE * max(abs(value), 0.5))
    mistake = next(
        (
            why
            for why, wrong in _mistakes(metric, evaluation)
            if abs(value - wrong) <= strict
            and (metric not in SHARES or value not in (0, 1) or why == "not shifted")  # many a mistake gives 0
            and abs(wrong - right[0]) > max(least_gap(metric, value, "batches" in why), 3 * tolerance)
            and all(abs(wrong - one) > 3 * tolerance for one in right)
        ),
        None,
    )
    if mistake is not None or evaluation.certain:
        recomputed = 100 * right[0] if percent else right[0]
        plain = evaluation.targets.ndim == 1 and evaluation.outputs.ndim == 2 and evaluation.outputs.shape[1] > 1
        yield Contradiction(name, metric, reported, recomputed, mistake, rows, plain, evaluation.where)


def least_gap(metric: Metric, value: float, is_mean: bool = False) -> float:
    """Return how far a wrong value must be from the right one, to be worth a warning.

    Args:
        metric: of which the wrong value is a share of an error or a perplexity, and of others absolute.
        value: that was reported.
        is_mean: whether it is a mean over batches, which often differs a little.
    """
    gap, share = MEAN_APART if is_mean else APART
    return gap if metric in (*SHARES, "r2") else share * abs(value)


def _tolerance(reported: float) -> float:
    """Return half of the last place that was reported, or what computing in single precision changes."""
    for places in range(1, 6):
        if abs(reported - round(reported, places)) < 1e-9:
            return 0.5 * 10.0**-places + 1e-9
    return 2e-5 * max(1.0, abs(reported))


# --- what is right -----------------------------------------------------------------------------------------------


def _right(metric: Metric, evaluation: Evaluation) -> tuple[list[float], int]:
    """Return the values that may be reported under a name, the plain one first, and the targets that count."""
    if metric == "perplexity":
        losses = [] if evaluation.loss is None else [evaluation.loss]
        own = _cross_entropy(evaluation, evaluation.causal)
        return [float(np.exp(loss)) for loss in (*losses, *own)], evaluation.targets.size
    if metric in NUMERIC:
        pair = _numbers(evaluation)
        if pair is None:
            return [], 0
        answers, truth = pair
        right = [one for one in number_values(metric, answers, truth).values() if np.isfinite(one)]
        if metric == "r2" and right and answers.std() > 0:
            right.append(float(np.corrcoef(answers.ravel(), truth.ravel())[0, 1]) ** 2)
        return right, len(truth)
    pairs = _class_pairs(evaluation)
    if not pairs:
        return [], 0
    if metric == "accuracy":
        return [one for pair in pairs for one in _accuracies(*pair, evaluation)], int((pairs[0][1] >= 0).sum())
    right, rows = list[float](), 0
    for answers, truth in pairs:
        counted = truth >= 0
        rows = rows or int(counted.sum())
        values = class_values(metric, answers[counted], truth[counted])
        right += [values["binary"]] if "binary" in values else []
        right += [one for average, one in values.items() if average != "binary"]
        if evaluation.pad is not None:
            kept = counted & (truth != evaluation.pad)
            right += class_values(metric, answers[kept], truth[kept]).values() if kept.any() else ()
    return right, rows


def _accuracies(answers: Array, truth: Array, evaluation: Evaluation) -> Iterator[float]:
    """Yield what may be called accuracy."""
    counted, same = truth >= 0, answers == truth
    if not counted.any():
        return
    yield float(same[counted].mean())
    recall = class_values("recall", answers[counted], truth[counted])
    yield recall["macro"]  # balanced
    kept = [counted & (truth != 0)]
    if evaluation.pad is not None:
        kept.append(counted & (truth != evaluation.pad))
    yield from (float(same[one].mean()) for one in kept if one.any())
    if truth.ndim > 1:
        rows = counted.any(axis=tuple(range(1, truth.ndim)))
        flat, right = counted.reshape(len(truth), -1)[rows], (same & counted).reshape(len(truth), -1)[rows]
        yield float((right.sum(axis=1) / flat.sum(axis=1)).mean())  # mean of the rows' accuracies
        yield float((right.sum(axis=1) == flat.sum(axis=1)).mean())  # rows that are right altogether
    scores = evaluation.outputs
    if scores.shape[:-1] == truth.shape and scores.dtype.kind == "f" and scores.ndim == 2:
        order = np.argsort(-scores[counted], axis=-1)[:, : max(TOP)]
        hits = order == truth[counted][:, None]
        yield from (float(hits[:, :top].any(axis=1).mean()) for top in TOP if top < scores.shape[-1])


def _class_pairs(evaluation: Evaluation) -> list[tuple[Array, Array]]:
    """Return answers and targets, both class numbers of one shape, in each way that may be meant."""
    outputs, targets = evaluation.outputs, evaluation.targets
    truth = _classes(targets)
    if truth is None:
        return []
    if outputs.shape[:-1] == truth.shape and outputs.shape[-1] > 1 and outputs.dtype.kind == "f":
        found = [(outputs.argmax(axis=-1), truth)]
    elif _is_one_hot(outputs, truth):
        found = [(outputs.argmax(axis=-1), truth.argmax(axis=-1))]
    elif outputs.size != truth.size:
        return []
    elif outputs.dtype.kind in "biu":
        found = [(outputs.reshape(truth.shape).astype(np.int64), truth)]
    else:
        single = outputs.reshape(truth.shape)
        levels = {"logits": (0.0,), "probabilities": (0.5,)}.get(evaluation.reads or "", (0.5, 0.0))
        found = [((single > level).astype(np.int64), truth) for level in levels]
    if evaluation.causal and truth.ndim == 2:
        return [(answers[:, :-1], labels[:, 1:]) for answers, labels in found]
    return found


def _classes(targets: Array) -> Array | None:
    if targets.dtype.kind in "biu":
        return targets.astype(np.int64)
    whole = targets.dtype.kind == "f" and bool(((targets == 0) | (targets == 1)).all())
    return targets.astype(np.int64) if whole else None


def _is_one_hot(outputs: Array, truth: Array) -> bool:
    return (
        outputs.shape == truth.shape
        and outputs.ndim == 2
        and outputs.shape[1] > 1
        and outputs.dtype.kind == "f"
        and bool((truth >= 0).all())
        and bool((truth.sum(axis=1) == 1).all())
        and bool(truth.max(initial=0) == 1)
    )


def _numbers(evaluation: Evaluation) -> tuple[Array, Array] | None:
    """Return the outputs and targets of a regression, of one shape, as float64."""
    outputs, targets = evaluation.outputs, evaluation.targets
    if outputs.size != targets.size or outputs.dtype.kind not in "iuf" or targets.dtype.kind not in "iuf":
        return None
    answers, truth = outputs.reshape(targets.shape).astype(np.float64), targets.astype(np.float64)
    usable = len(truth) > 1 and np.isfinite(answers).all() and np.isfinite(truth).all() and truth.std() > 0
    return (answers, truth) if usable else None


def class_values(metric: Metric, answers: Array, truth: Array) -> Values:
    """Return a metric of class numbers (n,), by the way of averaging; 0 stands for 0 / 0."""
    if metric == "accuracy":
        return {"all": float((answers == truth).mean())}
    classes = np.union1d(answers, truth)
    right = np.array([((answers == one) & (truth == one)).sum() for one in classes], float)
    said = np.array([(answers == one).sum() for one in classes], float)
    true = np.array([(truth == one).sum() for one in classes], float)
    below = {"f1": (said + true) / 2, "precision": said, "recall": true, "iou": said + true - right}[metric]
    each = np.divide(right, below, out=np.zeros_like(right), where=below > 0)
    values = {"macro": float(each.mean()), "weighted": float((each * true).sum() / true.sum())}
    values["micro"] = float(right.sum() / below.sum()) if below.sum() else 0.0
    if set(classes.tolist()) <= {0, 1}:
        binary = dict(zip(classes.tolist(), each.tolist(), strict=True))
        values |= {"binary": binary.get(1, 0.0), "of class 0": binary.get(0, 0.0)}
    return values


def number_values(metric: Metric, answers: Array, truth: Array) -> Values:
    """Return a metric of numbers; NaN where it is not defined."""
    errors = answers - truth
    if metric == "mae":
        return {"all": float(np.abs(errors).mean())}
    squared = float(np.square(errors).mean())
    if metric != "r2":
        return {"all": float(np.sqrt(squared)) if metric == "rmse" else squared}
    spread = np.square(truth - truth.mean(axis=0)).mean(axis=0)
    each = 1 - np.square(errors).mean(axis=0) / np.where(spread > 0, spread, np.nan)
    return {"all": float(np.mean(each)), "together": 1 - squared / (float(np.mean(spread)) or np.nan)}


def _cross_entropy(evaluation: Evaluation, shifted: bool) -> list[float]:
    """Return the mean cross entropy in nats of the targets that count, if the outputs are logits of classes."""
    outputs, truth = evaluation.outputs, _classes(evaluation.targets)
    if truth is None or outputs.shape[:-1] != truth.shape or outputs.dtype.kind != "f":
        return []
    if shifted and truth.ndim == 2:
        outputs, truth = outputs[:, :-1], truth[:, 1:]
    counted = (truth >= 0) & (truth < outputs.shape[-1])
    scores, labels = outputs[counted].astype(np.float64), truth[counted]
    if not len(labels):
        return []
    scores = scores - scores.max(axis=-1, keepdims=True)
    logs = np.log(np.exp(scores).sum(axis=-1)) - scores[np.arange(len(labels)), labels]
    return [float(logs.mean())]


# --- what is wrong -----------------------------------------------------------------------------------------------


def _mistakes(metric: Metric, evaluation: Evaluation) -> Iterator[tuple[str, float]]:
    """Yield common mistakes, each with the number that it gives."""
    if metric == "perplexity":
        if evaluation.loss is not None:
            yield "base", 2.0**evaluation.loss
            yield "no exponential", evaluation.loss
        if evaluation.causal:
            yield from (("not shifted", float(np.exp(loss))) for loss in _cross_entropy(evaluation, False))
    elif metric in NUMERIC:
        yield from _of_numbers(metric, evaluation)
    else:
        yield from _of_classes(metric, evaluation)


def _of_numbers(metric: Metric, evaluation: Evaluation) -> Iterator[tuple[str, float]]:
    pair = _numbers(evaluation)
    if pair is None:
        return
    answers, truth = pair
    if metric == "r2" and answers.std() > 0:
        yield from (("swapped", one) for one in number_values(metric, truth, answers).values())
    if metric == "rmse":
        yield "no root", number_values("mse", answers, truth)["all"]
    if truth.size == len(truth) and evaluation.outputs.shape != evaluation.targets.shape:
        yield from (
            ("broadcast", one) for one in _of_all_pairs(metric, answers.ravel(), truth.ravel(), evaluation)
        )
    if metric in NO_MEANS:
        yield from _of_batches(lambda a, t: number_values(metric, a, t), answers, truth, evaluation.batches)


def _of_all_pairs(metric: Metric, answers: Array, truth: Array, evaluation: Evaluation) -> Iterator[float]:
    """Yield what errors between all predictions and all targets give, over all rows or in each batch."""
    for parts in ((len(truth),), evaluation.batches):
        if metric == "r2" or not parts or sum(parts) != len(truth) or max(parts) > LARGEST_BROADCAST:
            continue
        ends = np.cumsum(parts)
        pairs = [(answers[e - n : e, None], truth[e - n : e]) for n, e in zip(parts, ends, strict=True)]
        values = [number_values(metric, *np.broadcast_arrays(*pair))["all"] for pair in pairs]
        yield float(np.average(values, weights=parts))


def _of_classes(metric: Metric, evaluation: Evaluation) -> Iterator[tuple[str, float]]:
    outputs, truth = evaluation.outputs, _classes(evaluation.targets)
    pairs = _class_pairs(evaluation)
    if truth is None or not pairs:
        return
    answers, labels = pairs[0]
    counted = labels >= 0
    if outputs.dtype.kind == "f" and outputs.size == truth.size and not _is_one_hot(outputs, truth):
        single, valid = outputs.reshape(truth.shape), truth >= 0
        if evaluation.reads == "logits" and _tell_one_half(single[valid]):
            for why, wrong in (("half", single > 0.5), ("half", single >= 0.5), ("rounded", np.round(single))):
                values = class_values(metric, wrong[valid].astype(np.int64), truth[valid])
                yield from ((why, one) for average, one in values.items() if average != "of class 0")
                yield from (
                    (f"{why}, batches", one)
                    for _, one in _of_batches(
                        lambda a, t: class_values(metric, a, t), wrong.astype(np.int64), truth, evaluation.batches
                    )
                    if metric in NO_MEANS
                )
    if metric == "accuracy":
        yield from _of_accuracy(answers, labels, evaluation)
    elif metric in ("precision", "recall"):
        other = class_values("recall" if metric == "precision" else "precision", answers[counted], labels[counted])
        yield from (("swapped", one) for average, one in other.items() if average in ("binary", "macro"))
        weighted = class_values(metric, labels[counted], answers[counted])["weighted"]
        yield "swapped", weighted
    if metric in NO_MEANS and counted.all():
        yield from _of_batches(lambda a, t: class_values(metric, a, t), answers, labels, evaluation.batches)


def _tell_one_half(logits: Array) -> bool:
    """Whether logits are close enough to 0.5, on both sides, to tell it from another threshold."""
    return all(bool(((side > 0) & (side < NEAR_HALF)).any()) for side in (logits - 0.5, 0.5 - logits))


def _of_accuracy(answers: Array, labels: Array, evaluation: Evaluation) -> Iterator[tuple[str, float]]:
    outputs, truth = evaluation.outputs, evaluation.targets
    counted, same = labels >= 0, answers == labels
    if evaluation.causal and truth.ndim == 2:
        whole = outputs.argmax(axis=-1) if outputs.ndim == 3 else outputs.reshape(truth.shape)
        for where in (truth >= 0, truth > -np.inf, *([] if evaluation.pad is None else [truth != evaluation.pad])):
            if (where & (truth >= 0)).any():
                yield "not shifted", float((whole == truth)[where].mean())
    if not counted.all():
        yield "ignored counted", float((same & counted).mean())
        if evaluation.pad is not None:
            yield "ignored counted", float(np.where(counted, same, answers == evaluation.pad).mean())
    exclusive = outputs.ndim == 2 and outputs.shape[1] > 1 and outputs.dtype.kind == "f" and labels.ndim == 1
    if exclusive and counted.all() and labels.max(initial=0) < outputs.shape[1]:
        one_hot = np.eye(outputs.shape[1])[labels]
        yield "each output", float(((outputs > 0.5) == one_hot).mean())
    if labels.ndim == 1 and counted.all():
        for parts in ((len(labels),), evaluation.batches):
            if parts and sum(parts) == len(labels):
                yield "broadcast", _agreeing_pairs(answers, labels, parts)


def _agreeing_pairs(answers: Array, labels: Array, parts: Sequence[int]) -> float:
    """Return the share of equal ones among all pairs of a prediction and a target of one batch."""
    pairs, start = 0.0, 0
    classes = max(answers.max(), labels.max()) + 1
    for rows in parts:
        said = np.bincount(answers[start : start + rows], minlength=classes)
        true = np.bincount(labels[start : start + rows], minlength=classes)
        pairs, start = pairs + float(said @ true) / rows, start + rows
    return pairs / len(labels)


def _of_batches(
    values: Callable[[Array, Array], Values], answers: Array, truth: Array, batches: Sequence[int]
) -> Iterator[tuple[str, float]]:
    """Yield the means of a metric over batches."""
    if len(batches) < BATCHES or sum(batches) != len(truth):
        return
    ends = np.cumsum(batches)
    each = [values(answers[e - n : e], truth[e - n : e]) for n, e in zip(batches, ends, strict=True)]
    for average in each[0]:
        column = [one.get(average, np.nan) for one in each]
        if np.isfinite(column).all():
            yield "batches", float(np.mean(column))
            yield "batches", float(np.average(column, weights=batches))
