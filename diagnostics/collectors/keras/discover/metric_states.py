"""Reads what the metric objects of a custom loop have added up when the script asks for their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.values import number_of
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.metrics import MetricState
from diagnostics.facts.where import Where
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

METRICS, READS = 64, 256  # that are kept, and of each; later ones are ignored


@dataclass
class _Read:
    """The reads of one metric; of several between the same two steps, the last.

    Attributes:
        step: steps before the latest read.
        sums: samples, and the sum of their values, at each read.
        resets: after the first read.
        seen: samples after a step since the latest read; None before the first step.
        trained: whether samples were added from one step to the next; None if not known.
    """

    name: str
    kind: str
    compares: bool
    step: int = -1
    sums: list[tuple[float, float]] = field(default_factory=list)
    resets: int = 0
    where: Where | None = None
    seen: float | None = None
    trained: bool | None = None


class MetricStates:
    """Follows the metrics that are means, from the first time that the script reads one in eager code.

    It reads their counts then, and after the first, second, fourth, eighth, ... step that follows.

    Args:
        guard: runs the work.
    """

    def __init__(self, guard: FaultGuard) -> None:
        self._guard = guard
        self._of: IdentityMap[Any, _Read] = IdentityMap()
        self._all: list[_Read] = []
        self._optimizers: IdentityMap[Any, None] = IdentityMap()
        self._steps = self._since = 0  # steps in all, and since the latest read

    def listen(self) -> Unsubscribe:
        """Start listening; return what ends it."""
        return subscribe(
            self._guard.attempt, (taps.mean_result.after, self._reads), (taps.metric_reset.before, self._resets)
        )

    def stepped(self, optimizer: Any) -> None:
        """Count a step of a loop. The first of an optimizer may begin another fold, whose samples are pooled."""
        if optimizer not in self._optimizers:
            self._optimizers[optimizer] = None
            if self._steps:
                self._of.clear()
                self._all.clear()
        self._steps += 1
        self._since += 1
        if self._since & (self._since - 1) == 0:
            for metric, read in self._of.items():
                count = number_of(metric.count)
                if read.seen is not None:
                    read.trained = bool(read.trained) or count != read.seen
                read.seen = count

    def facts(self) -> tuple[MetricState, ...]:
        """Return the metrics that were read more than once, with steps in between."""
        return tuple(
            MetricState(
                read.name,
                read.kind,
                tuple(count for count, _ in read.sums),
                tuple(total for _, total in read.sums),
                read.resets,
                read.compares,
                read.trained,
                read.where,
            )
            for read in self._all
            if len(read.sums) > 1
        )

    def _reads(self, _result: Any, metric: Any) -> None:
        if not tf.executing_eagerly():
            return
        if metric not in self._of:
            if len(self._all) == METRICS:
                return
            compares = isinstance(metric, keras.metrics.MeanMetricWrapper)
            self._of[metric] = _Read(metric.name, type(metric).__name__, compares)
            self._all.append(self._of[metric])
        read, self._since = self._of[metric], 0
        read.seen = None
        again = read.step == self._steps
        if not again and len(read.sums) == READS:
            return
        read.step, read.where = self._steps, read.where if again else script_line()
        read.sums[len(read.sums) - again :] = [(number_of(metric.count), number_of(metric.total))]

    def _resets(self, metric: Any) -> None:
        if metric in self._of:
            self._of[metric].resets += 1
            self._of[metric].seen = None
