"""Observes custom loops around a Keras optimizer, and `train_on_batch`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import FrozenCalls, ObjectLedger
from diagnostics.facts.where import Places, Where
from diagnostics.report.report import Report
from diagnostics.run.looks import of_tape
from diagnostics.run.steps import loop_stepped

from .train_on_batch_calls import TrainOnBatchCalls
from .training import Training, Trainings

if TYPE_CHECKING:
    from diagnostics.collectors.keras.discover.tape_loops import TapeLoopFinder
    from diagnostics.collectors.keras.discover.tape_watcher import TapeLoopWatcher
    from diagnostics.collectors.keras.discover.unapplied import UnappliedGradients
    from diagnostics.collectors.keras.discover.unread_losses import LayerLosses, Penalty
    from diagnostics.collectors.keras.discover.untrained_instances import UntrainedInstanceProbe
    from diagnostics.facts.loss_graph import LossGraph


@dataclass
class _TapeWatch:
    """Reports on a custom loop around a Keras optimizer."""

    loop: TapeLoopWatcher
    alone: Callable[[], bool]  # whether no other optimizer steps, to which the tapes may belong
    losses: LayerLosses
    penalties: tuple[Penalty, ...]  # of its variables
    evaluated: ObjectLedger | None = None

    def _report(self) -> Report:
        from diagnostics.api.watch_report import watch_report

        tapes = self.loop.tapes.facts() if self.alone() else None
        unread = self.losses.of_loop(self.penalties)
        facts = (self.loop.graph, tapes, self.evaluated, unread)
        return watch_report(self.loop, self.loop.name, tuple(fact for fact in facts if fact is not None))


@dataclass
class _Watch:
    """Reports on what is no loop."""

    _report: Callable[[], Report]


class KerasLoopObserver:
    """Watches each loop from its first step on.

    Args:
        trainings: each loop is added here.
        at_close: takes what is to be undone.
        fitted: whether a model was fitted, and so examined.
        losses: that layers add.
    """

    def __init__(
        self,
        trainings: Trainings,
        at_close: contextlib.ExitStack,
        fitted: Callable[[Any], bool],
        losses: LayerLosses,
    ) -> None:
        self._trainings, self._at_close, self._losses = trainings, at_close, losses
        self.handed = TrainOnBatchCalls(trainings, fitted)
        self._finder: TapeLoopFinder | None = None
        self._instances: UntrainedInstanceProbe | None = None

    def find(self) -> None:
        """Observe from now on: Keras on TensorFlow is there."""
        from diagnostics.collectors.keras.discover.tape_loops import TapeLoopFinder

        self._finder = TapeLoopFinder(
            self._watch, self._trainings.fault, on_step=loop_stepped, on_broken=self._trainings.on_broken
        )
        self._at_close.callback(self._finder.close)
        self._at_close.callback(self._trainings.guard.attempt, self._add_unapplied, self._finder.unapplied)
        self._at_close.callback(self._trainings.guard.attempt, self._add_frozen)
        self._at_close.callback(self._trainings.guard.attempt, self.handed.keep_rows)

    def compare(self, instances: UntrainedInstanceProbe) -> None:
        """Compare the models that are evaluated with those that are trained."""
        self._instances = instances
        self._at_close.callback(self._trainings.guard.attempt, self._add_evaluated, instances)

    def suspended(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no loop is observed."""
        return contextlib.nullcontext() if self._finder is None else self._finder.suspended()

    def graph(self) -> LossGraph | None:
        """Return the graph of the loss of a traced step; None if it is not known."""
        return None if self._finder is None else self._finder.graph()

    def made_at(self, optimizer: Any) -> Where | None:
        """Return the line of the script that created an optimizer; None if not known."""
        return None if self._finder is None else self._finder.made_at.get(optimizer)

    def keep(self) -> None:
        """Keep what the second look needs of the only loop; two train in turn, as those of a GAN."""
        loops = [training for training in self._trainings.all if isinstance(training.watching, _TapeWatch)]
        if len(loops) != 1 or loops[0].examined is not None or loops[0].watching.loop.seen is None:
            return
        loop = loops[0].watching.loop
        self._trainings.keep(loops[0], functools.partial(of_tape, loop))
        loops[0].examined = Report(f"examined {loop.name}")

    def _is_alone(self) -> bool:
        return sum(isinstance(training.watching, _TapeWatch) for training in self._trainings.all) == 1

    def _add_unapplied(self, seen: UnappliedGradients) -> None:
        from diagnostics.api.watch_report import watch_report

        if seen.is_forgotten():
            watch = _Watch(lambda: watch_report(seen, seen.name, seen.facts()))
            self._trainings.begin(Training(watching=watch))

    def _add_frozen(self) -> None:
        for calls in self.handed.frozen():
            self._trainings.begin(Training(watching=_Watch(functools.partial(_of_frozen, calls))))

    def _watch(self, loop: TapeLoopWatcher, optimizer: Any, variables: list[Any]) -> None:
        watch = _TapeWatch(loop, self._is_alone, self._losses, self._losses.penalties(variables))
        places = Places(optimizer=self.made_at(optimizer), training=script_line())
        training = self._trainings.begin(Training(watching=watch, places=places))
        self.handed.began(optimizer, training)
        if self._instances is not None:
            self._instances.trained(variables, optimizer, training)

    def _add_evaluated(self, instances: UntrainedInstanceProbe) -> None:
        for training, evaluated in instances.facts():
            if isinstance(training.watching, _TapeWatch):
                training.watching.evaluated = evaluated
            else:
                training.extend((evaluated,))


def _of_frozen(calls: FrozenCalls) -> Report:
    """Report on calls that train a frozen model."""
    from diagnostics.report.build import evaluated, new_evaluator

    evaluator = new_evaluator()
    return evaluated(f"{calls.model}.train_on_batch", evaluator, evaluator.add(calls), (FrozenCalls,))
