"""Reads calls to a metric: their results, and what several calls from one line of the script show together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import Reads
from diagnostics.facts.metrics import OF_NUMBERS, Evaluation, MetricCall, MetricLedger, MetricState

from .metric_values import BATCHES, NO_MEANS, NUMERIC, ROWS, class_values, least_gap, metric_of, number_values

EPOCHS = 2  # calls between which optimizers step, at least
DIFFERENCE = 0.01  # relative, between a metric object and the latest evaluation
READS = 3  # of a metric object, with training steps in between


def evaluations_of(ledger: MetricLedger) -> list[Evaluation]:
    """Return the evaluations of a run: those that it reported, and those that calls of metrics show."""
    called = [one for call in ledger.calls if (one := _evaluation_of(call, ledger.reads)) is not None]
    return [*ledger.evaluations, *called]


def _evaluation_of(call: MetricCall, reads: Reads | None) -> Evaluation | None:
    """Return the evaluation that a metric is called for, if the model's outputs are known."""
    value = value_of(call)
    if call.outputs is None or value is None:
        return None
    made = Evaluation(
        call.outputs,
        call.truth,
        {call.metric: value},
        batches=call.batches,
        reads=reads,
        certain=False,
        where=call.where,
    )
    outputs = call.outputs.reshape(-1)
    if len(outputs) == len(call.truth) and call.metric in OF_NUMBERS and np.allclose(call.truth, outputs, 1e-5):
        return replace(made, targets=call.answers)  # the arguments are swapped
    return made


def value_of(call: MetricCall) -> float | None:
    """Return what a metric returned; None if it is not computed here."""
    metric = metric_of(call.metric)
    if metric is None or not len(call.truth) or len(call.truth) != len(call.answers):
        return None
    if metric in NUMERIC:
        value = number_values(metric, call.answers.astype(np.float64), call.truth.astype(np.float64))["all"]
        return value if np.isfinite(value) else None
    if not all(one.dtype.kind in "biu" or (one == np.round(one)).all() for one in (call.truth, call.answers)):
        return None
    values = class_values(metric, call.answers.astype(np.int64), call.truth.astype(np.int64))
    return values.get("all" if metric == "accuracy" else call.average or "")


@dataclass(frozen=True)
class MeanOfBatches:
    """A metric that was computed for each batch of an evaluation.

    Attributes:
        call: the last.
        batches: how many.
        rows: of all.
        mean: of the batches' values.
        whole: the metric of all rows.
    """

    call: MetricCall
    batches: int
    rows: int
    mean: float
    whole: float


def mean_of_batches(series: Sequence[MetricCall]) -> MeanOfBatches | None:
    """Return the last evaluation that called a metric once for each batch, if the mean is another number."""
    found = None
    for group in _evaluations_in(series):
        rows = [len(call.truth) for call in group]
        values = [value_of(call) for call in group]
        if len(group) < BATCHES or sum(rows) < 2 * ROWS or len(set(rows[:-1])) != 1 or rows[-1] > rows[0]:
            continue
        metric = metric_of(group[0].metric)
        if None in values or metric not in NO_MEANS or _is_sweep(group):
            continue
        together = MetricCall(
            group[0].metric,
            np.concatenate([call.truth for call in group]),
            np.concatenate([call.answers for call in group]),
            group[0].average,
        )
        mean, whole = float(np.mean([value for value in values if value is not None])), value_of(together)
        if whole is not None and abs(mean - whole) > least_gap(metric, whole, is_mean=True):
            found = MeanOfBatches(group[-1], len(group), sum(rows), mean, whole)
    return found


def _evaluations_in(series: Sequence[MetricCall]) -> Iterator[list[MetricCall]]:
    """Split calls between the steps of optimizers; without those that do not follow a pass of a model each."""
    for step in dict.fromkeys(call.step for call in series):
        group = [call for call in series if call.step == step]
        passes = {call.passes for call in group[1:]}
        if len(passes) == 1 and None not in passes and 0 not in passes and all(call.whole for call in group):
            yield group


def _is_sweep(group: Sequence[MetricCall]) -> bool:
    """Whether the same targets come again, as for several thresholds; few rows may be alike by chance."""
    several = [call.truth.tobytes() for call in group if (call.truth != call.truth[0]).any()]
    return 2 * len(set(several)) <= len(several)


@dataclass(frozen=True)
class Accumulated:
    """A metric whose rows grew with each evaluation, by the same rows again.

    Attributes:
        call: the last.
        rows: of one evaluation.
        times: evaluations in the last call.
        value: the metric of all of them.
        latest: the metric of the latest evaluation alone; None if not computed here.
    """

    call: MetricCall
    rows: int
    times: int
    value: float | None
    latest: float | None


def accumulated(series: Sequence[MetricCall]) -> Accumulated | None:
    """Return how predictions of earlier evaluations stayed in a list that is never emptied, if they did."""
    first = series[0] if series else None
    if first is None or len(series) < EPOCHS or len(first.truth) < ROWS or not first.whole:
        return None
    rows, ordered = len(first.truth), np.sort(first.truth)
    for before, call in pairwise(series):
        new = call.truth[len(before.truth) :]
        if not call.whole or len(new) != rows or call.step == before.step or not (np.sort(new) == ordered).all():
            return None
        if not _begins_with(call.truth, before.truth) or not _begins_with(call.answers, before.answers):
            return None
    last = series[-1]
    alone = MetricCall(last.metric, last.truth[-rows:], last.answers[-rows:], last.average)
    return Accumulated(last, rows, len(last.truth) // rows, value_of(last), value_of(alone))


@dataclass(frozen=True)
class NeverReset:
    """A metric object that adds the samples of each evaluation to those of the earlier ones.

    Attributes:
        state: of the object.
        rows: samples of one evaluation.
        value: that the latest read returned.
        latest: the mean of the latest evaluation alone.
        is_certain: whether the script cannot have meant it.
    """

    state: MetricState
    rows: float
    value: float
    latest: float
    is_certain: bool


def never_reset(state: MetricState, states: Sequence[MetricState]) -> NeverReset | None:
    """Return how a metric object kept the samples of earlier evaluations, if it did.

    Args:
        state: of the object.
        states: of all metric objects of the training.
    """
    rows, totals = state.counts[0], state.totals
    even = np.allclose(np.diff(state.counts), rows, rtol=1e-3)
    # A mean to which each epoch adds one value is meant to go on.
    if state.resets or len(state.counts) < READS or not even or rows < (1 if state.compares else 2):
        return None
    others = [one for one in states if one.resets >= len(one.counts) - 1 and len(one.counts) >= len(state.counts)]
    if state.trained is not False and not others:
        return None  # a running mean during a single epoch
    value, latest = totals[-1] / state.counts[-1], (totals[-1] - totals[-2]) / rows
    if abs(value - latest) < DIFFERENCE * max(abs(value), abs(latest)):
        return None
    alike = [one for one in others if one.kind == state.kind and one.trained == state.trained]
    if any(np.allclose((one.counts[-1], one.totals[-1]), (rows, totals[-1] - totals[-2]), 1e-3) for one in alike):
        return None  # that of the whole training, beside that of each epoch
    if state.trained is False:
        return NeverReset(state, rows, value, latest, is_certain=state.compares or bool(others))
    is_certain = bool(state.trained) and any(one.trained for one in others)
    return NeverReset(
        state, rows, value, latest, is_certain and all(np.isclose(one.counts[-1], rows) for one in alike)
    )


def _begins_with(whole: Array, part: Array) -> bool:
    return bool((whole[: len(part)] == part).all())


@dataclass(frozen=True)
class Swapped:
    """A metric whose second argument stays the same while the model trains, and whose first changes.

    Attributes:
        call: the last.
        calls: how many.
        value: that it returned.
        turned: with its arguments the other way round.
    """

    call: MetricCall
    calls: int
    value: float
    turned: float


def swapped(series: Sequence[MetricCall]) -> Swapped | None:
    """Return how the targets are passed as the predictions, if they are."""
    by_step = {call.step: call for call in series}  # the last after each step
    calls, first = list(by_step.values()), series[0]
    if len(calls) < EPOCHS or len(first.truth) < ROWS or not all(call.whole for call in series):
        return None
    if not all(_equal(call.answers, first.answers) for call in series):
        return None
    if all(_equal(call.truth, first.truth) for call in calls) or len(np.unique(first.answers)) < 2:
        return None
    last = calls[-1]
    value, turned = value_of(last), value_of(replace(last, truth=last.answers, answers=last.truth))
    if value is None or turned is None or abs(value - turned) < least_gap(metric_of(last.metric) or "", value):
        return None
    return Swapped(last, len(calls), value, turned)


def _equal(one: Array, other: Array) -> bool:
    return len(one) == len(other) and bool((one == other).all())
