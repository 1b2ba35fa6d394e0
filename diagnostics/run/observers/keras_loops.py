"""Observes custom loops around a Keras optimizer, and `train_on_batch`."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.config import shows_batch
from diagnostics.facts.calls import FrozenCalls, ObjectLedger
from diagnostics.facts.data import FrozenDraws
from diagnostics.facts.metrics import MetricLedger
from diagnostics.facts.where import Places, Where
from diagnostics.report.report import Report
from diagnostics.run.looks import of_keras, of_tape
from diagnostics.run.second_look import Look
from diagnostics.run.steps import loop_stepped
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

from .training import Training, Trainings

if TYPE_CHECKING:
    from diagnostics.collectors.keras.discover.metric_states import MetricStates
    from diagnostics.collectors.keras.discover.tape_loops import TapeLoopFinder
    from diagnostics.collectors.keras.discover.tape_watcher import TapeLoopWatcher, UnappliedGradients
    from diagnostics.collectors.keras.discover.traced_draws import TracedDraws
    from diagnostics.collectors.keras.discover.unread_losses import LayerLosses, OwnLoss
    from diagnostics.collectors.keras.discover.untrained_instances import UntrainedInstanceProbe
    from diagnostics.collectors.keras.examine.kept_training import KeptTraining
    from diagnostics.collectors.keras.watch.train_on_batch import TrainOnBatchRows
    from diagnostics.facts.loss_contracts import LossKind
    from diagnostics.facts.loss_graph import LossGraph
    from diagnostics.facts.pipeline import ModelFacts

TRIES = 3  # after which a model that has no weights yet is not asked again; most make them in the first step


@dataclass
class _TapeWatch:
    """Reports on a custom loop around a Keras optimizer."""

    loop: TapeLoopWatcher
    alone: Callable[[], bool]  # whether no other optimizer steps, to which the tapes may belong
    losses: LayerLosses
    own_losses: tuple[OwnLoss, ...]  # of its layers
    evaluated: ObjectLedger | None = None
    metrics: MetricLedger | None = None

    def _report(self) -> Report:
        from diagnostics.api.watch_report import watch_report

        tapes = self.loop.tapes.facts() if self.alone() else None
        unread = self.losses.of_loop(self.own_losses)
        facts = (self.loop.graph, tapes, self.evaluated, unread, self.metrics)
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
        from diagnostics.collectors.keras.discover.metric_states import MetricStates
        from diagnostics.collectors.keras.discover.tape_loops import TapeLoopFinder
        from diagnostics.collectors.keras.discover.traced_draws import TracedDraws

        states = MetricStates(self._trainings.guard)

        def stepped(optimizer: Any) -> None:
            self._trainings.guard.attempt(states.stepped, optimizer)
            loop_stepped(optimizer)

        self._finder = TapeLoopFinder(
            self._watch, self._trainings.fault, on_step=stepped, on_broken=self._trainings.on_broken
        )
        self._at_close.callback(self._finder.close)
        self._at_close.callback(self._trainings.guard.attempt, self._add_states, states)
        self._at_close.callback(states.listen())
        self._at_close.callback(self._trainings.guard.attempt, self._add_unapplied, self._finder.unapplied)
        self._at_close.callback(self._trainings.guard.attempt, self._add_frozen)
        draws = TracedDraws(self._trainings.guard)
        self._at_close.callback(self._trainings.guard.attempt, self._add_draws, draws)
        self._at_close.callback(draws.listen())
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
            self._trainings.begin(
                Training(watching=_Watch(functools.partial(_of_fact, f"{calls.model}.train_on_batch", calls)))
            )

    def _add_states(self, states: MetricStates) -> None:
        watches = [each.watching for each in self._trainings.all if isinstance(each.watching, _TapeWatch)]
        if watches and (facts := states.facts()):
            watches[-1].metrics = MetricLedger(states=facts)

    def _add_draws(self, traced: TracedDraws) -> None:
        if self._trainings.all:
            for draws in traced.facts():
                self._trainings.begin(
                    Training(watching=_Watch(functools.partial(_of_fact, f"traced {draws.where.function}", draws)))
                )

    def _watch(self, loop: TapeLoopWatcher, optimizer: Any, variables: list[Any]) -> None:
        watch = _TapeWatch(loop, self._is_alone, self._losses, self._losses.of_variables(variables))
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


def _of_fact(title: str, fact: FrozenCalls | FrozenDraws) -> Report:
    """Report on calls that train a frozen model, or on random numbers that a traced function repeats."""
    from diagnostics.report.build import evaluated, new_evaluator

    evaluator = new_evaluator()
    return evaluated(title, evaluator, evaluator.add(fact), (type(fact),))


@dataclass
class _OfOptimizer:
    """What is known of one optimizer; nothing of the script's is kept alive once `look` is given away.

    Attributes:
        tries: examinations that were begun.
        over: whether there is no need for another.
        report: of the examination; None if there is none.
        look: at the model again, while it waits for the training to begin, within a graph.
        training: of the optimizer, once it has begun.
        rows: of the batches.
        trained: kind of the loss with the number of classes, and the model.
        batches: returns what takes those of the training, while the second look wants them.
    """

    tries: int = 0
    over: bool = False
    report: Report | None = None
    look: Look | None = None
    training: Training | None = None
    rows: TrainOnBatchRows | None = None
    trained: tuple[tuple[LossKind, int | None], ModelFacts] | None = None
    batches: Callable[[], KeptTraining | None] = lambda: None

    def keep(self, kept: KeptTraining) -> None:
        """Let batches be taken, as long as the second look wants them."""
        self.batches = weakref.ref(kept)


class TrainOnBatchCalls:
    """The examinations of a script's `train_on_batch`, joined to the trainings that are seen by their optimizers.

    Args:
        trainings: of the script.
        fitted: whether a model was fitted, and so examined.
    """

    def __init__(self, trainings: Trainings, fitted: Callable[[Any], bool]) -> None:
        self._all, self._fitted = trainings, fitted
        self._known: IdentityMap[Any, _OfOptimizer] = IdentityMap()  # by optimizer
        self._begun: list[_OfOptimizer] = []  # whose training was seen, also of optimizers that are gone
        self._frozen: Any = None  # of Keras, which is not imported before the script does

    def began(self, optimizer: Any, training: Training) -> None:
        """Take the training of an optimizer, which may be examined before or after."""
        handed = self._of(optimizer)
        handed.training, training.examined = training, handed.report
        self._begun.append(handed)
        look, handed.look = handed.look, None
        self._all.keep(training, lambda: look)

    def listen(self) -> Unsubscribe:
        """Examine a model before its `train_on_batch`, once, as soon as it has weights; return what ends it."""
        train = taps.train_on_batch
        return subscribe(None, (train.before, self._begins), (train.ended, self._ended))

    def _begins(self, model: Any, *arguments: Any, **options: Any) -> None:
        self._all.guard.attempt(self._count, model)
        optimizer = getattr(model, "optimizer", None)
        if optimizer is not None and not self._fitted(model):
            handed = self._of(optimizer)
            if not handed.over:
                self._all.guard.attempt(self._examine, handed, model, arguments, options)
            self._all.guard.attempt(_take, handed, arguments, options)

    def _ended(self, model: Any, *_arguments: Any, **_options: Any) -> None:
        optimizer = getattr(model, "optimizer", None)
        if optimizer in self._known:
            self._known[optimizer].look = None  # it holds the model, and no training has begun

    def frozen(self) -> tuple[FrozenCalls, ...]:
        """Return the calls of models that have nothing to train."""
        return () if self._frozen is None else tuple(self._frozen.facts())

    def keep_rows(self) -> None:
        """Give each training of one kind of loss the rows that it was handed, to compare its course with."""
        for handed in self._begun:
            training = handed.training
            if training is not None and training.rows is None and handed.rows and handed.trained is not None:
                loss, model = handed.trained
                training.rows, repeated = handed.rows.facts(*loss)
                training.beside = () if repeated is None else (repeated, model)
            flips = handed.rows.images.facts() if training is not None and handed.rows else None
            if training is not None and flips is not None:
                training.with_course = (*training.with_course, flips)

    def _of(self, optimizer: Any) -> _OfOptimizer:
        if optimizer not in self._known:
            self._known[optimizer] = _OfOptimizer()
        return self._known[optimizer]

    def _count(self, model: Any) -> None:
        from diagnostics.collectors.keras.watch.train_on_batch import FrozenModels

        self._frozen = self._frozen or FrozenModels()
        self._frozen.called(model)

    def _examine(self, handed: _OfOptimizer, model: Any, arguments: Any, options: Any) -> None:
        from diagnostics.api.walk import Walk
        from diagnostics.collectors.keras.examine.tf_step import handed_batch
        from diagnostics.collectors.keras.model import describe_model

        handed.tries += 1
        pipeline = handed_batch(model, *arguments, **options)
        handed.over = pipeline is not None or handed.tries == TRIES
        if pipeline is None:
            self._all.guard.attempt(self._show, *arguments, **options)
            return
        report = handed.report = Walk(pipeline).report()
        if pipeline.plain_loss is not None:
            handed.trained = pipeline.plain_loss, describe_model(model)

        def look() -> Look | None:
            return of_keras(model, pipeline, self._all.guard, on_kept=handed.keep)

        if handed.training is not None:
            handed.training.examined = report
            self._all.keep(handed.training, look)
        elif self._all.looks_again:
            handed.look = self._all.guard.attempt(look)
        self._all.on_examined(report)

    def _show(self, x: Any, y: Any = None, *_: Any, **__: Any) -> None:
        """Show the batch of a call that is not examined, to those who want no more than that."""
        from diagnostics.collectors.keras.batch import view_of

        if shows_batch() and (view := view_of("training", (x, y))) is not None:
            self._all.on_examined(Report("a batch", batches=(view,)))


def _take(handed: _OfOptimizer, arguments: Any, options: Any) -> None:
    from diagnostics.collectors.keras.watch.train_on_batch import TrainOnBatchRows

    handed.rows = handed.rows or TrainOnBatchRows()
    handed.rows.take(*arguments, **options)
    if (kept := handed.batches()) is not None:
        kept.take_call(*arguments, **options)
