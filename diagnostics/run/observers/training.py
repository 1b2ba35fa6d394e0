"""The trainings of a script, with the report of each: calls that train, and what is said where none was seen."""

from __future__ import annotations

import dataclasses
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.guard import FaultGuard, is_device_failure, is_out_of_memory
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.where import NO_PLACES, Places
from diagnostics.report.build import extended
from diagnostics.report.contents import StageResult
from diagnostics.report.report import Report
from diagnostics.run.second_look import Look, SecondLook
from diagnostics.text.join import count_of, duration

if TYPE_CHECKING:
    from diagnostics.api.walk import Walk
    from diagnostics.collectors.keras.discover.step_answers import StepAnswers
    from diagnostics.collectors.shared.learnability import KeptRows
    from diagnostics.facts.loss_contracts import LossKind
    from diagnostics.facts.training import TrainingHistory
import contextlib
from dataclasses import replace
from functools import partial
from typing import Protocol

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.errors import InvalidInput
from diagnostics.taps.tap import TrainCall, TrainTap, Unsubscribe

if TYPE_CHECKING:
    from diagnostics.collectors.shared.pipeline import Pipeline
    from diagnostics.report.report import Report

BUSY_S = 2.0  # of processor time in child processes: to import PyTorch takes as long
NOTHING_TRAINED = StageResult(
    "training",
    "not judged",
    "none found: no Trainer.train, no Keras fit, and no PyTorch optimizer that stepped with a model",
)
OFTEN = 4  # trainings of one model that are watched; to begin takes a second, and some call `fit` for each step

# Who watches, arguments and options to call a method with, and what to do at its end.
Joined = tuple[Any, Any, Any, Callable[[], object]]


@dataclass
class Training:
    """One training of the script.

    Attributes:
        examined: the report of the examination before it, or of its first step; None if it was not examined.
        watching: an object with the report of the watched run; None if it is not watched.
        awaits_batch: whether to examine it once it has drawn a batch.
        trained_alone: whether no other training of the script steps in turn with this one.
        rows: some of its data, where its watcher does not see the targets.
        beside: facts that are evaluated together with the targets of these rows.
        with_course: facts of the whole script that are evaluated together with those of the watched run.
        plain_loss: of such a training, if it is known: its kind, and how many classes it tells apart.
        model: of a PyTorch loop or a Trainer, a weak twin of the script's; None once that is freed.
        batches: returns what keeps those of its training, while the second look wants them.
        step_answers: what the own train step of a Keras model compares with its input.
        walk: an examination whose overfit waits for the end of the training; None if nothing waits.
        places: lines of the script that the training goes through.
        continues: the training before it of the same model; None if it is the first.
    """

    examined: Report | None = None
    watching: Any = None
    awaits_batch: bool = False
    trained_alone: bool = True
    rows: KeptRows | None = None
    beside: tuple[Any, ...] = ()
    with_course: tuple[Any, ...] = ()
    plain_loss: tuple[LossKind, int | None] | None = None
    model: Any = None
    batches: Callable[[], Any] = lambda: None
    step_answers: StepAnswers | None = None
    walk: Walk | None = None
    places: Places = NO_PLACES
    continues: Training | None = None
    _came: list[tuple[tuple[Any, ...], str]] = field(default_factory=list)  # while `walk` waits

    def before(self) -> Iterator[Training]:
        """Yield the earlier trainings of the same model, the latest first."""
        if self.continues is not None:
            yield self.continues
            yield from self.continues.before()

    def extend(self, facts: tuple[Any, ...], stage: str = "") -> None:
        """Evaluate the rules on facts that came after the examination, if there was one; see `extended`."""
        if self.examined is not None:
            self.examined = extended(self.examined, facts, stage)
        if self.walk is not None:
            self._came.append((facts, stage))

    def overfit_if_needed(self, history: Callable[[], TrainingHistory | None]) -> None:
        """Run the overfit that was put off, unless the training has failed, or has shown that the model learns.

        To be called when the training has just ended, or is being left by an exception.

        Args:
            history: returns what was recorded of it.
        """
        walk, self.walk = self.walk, None
        if walk is None:
            return
        if sys.exc_info()[0] is not None:
            self.examined = walk.without_overfit("the training ended before its last step")
        elif walk.pipeline.overfit_is_needed(_losses(history())):
            self.examined = walk.overfit_now()
        else:
            self.examined = walk.without_overfit("not needed: the loss of the training itself fell")
        came, self._came = self._came, []
        for facts, stage in came:
            self.extend(facts, stage)


@dataclass
class Over:
    """Replaces the watch of a training that is over: keeps its report and nothing else."""

    final: Report

    def _report(self) -> Report:
        return self.final


class Trainings:
    """The trainings of a script, and what is done with each report of an examination.

    Attributes:
        all: in the order in which they began.
        faults: errors in the library itself, as tracebacks.
        guard: keeps them out of the script.
        on_examined: called with each report of an examination.
        on_broken: called by each watcher; see `TorchWatcher`. None for nothing.
        shows_evaluation: whether the report of an examination shows rows of the evaluation data, too.
    """

    shows_evaluation = False

    def __init__(
        self,
        on_examined: Callable[[Report], object],
        second: SecondLook | None,
        on_broken: Callable[[], object] | None = None,
    ) -> None:
        self.all: list[Training] = []
        self.faults: list[str] = []
        self.guard = FaultGuard(on_fault=self.fault)
        self.on_examined, self.on_broken = on_examined, on_broken
        self._second = second
        self._latest: IdentityMap[Any, Training] = IdentityMap()  # of each model

    def begin(self, training: Training, model: Any = None) -> Training:
        """Add a training, and return it; `model`: that is trained, if it is known."""
        self.all.append(training)
        if model is not None:
            training.continues, self._latest[model] = self._latest.get(model), training
        return training

    def continued(self, training: Training) -> list[Training]:
        """Return the later trainings of the same model, in order."""
        found = [training]
        for each in self.all:
            if each.continues is found[-1]:
                found.append(each)
        return found[1:]

    def examined(self, training: Training, report: Report) -> None:
        """Take the report of an examination."""
        training.examined = report
        self.on_examined(report)

    def keep(self, training: Training, look: Callable[[], Look | None], model: Any = None) -> None:
        """Keep what the second look needs of a training; see `SecondLook.keep`."""
        if self._second is not None and self._second.wants(training):
            self._second.keep(training, self.guard.attempt(look), model)

    def keeps(self, training: Training) -> bool:
        """Return whether the second look looks at a training."""
        return self._second is not None and self._second.keeps(training)

    def freed(self, training: Training) -> None:
        """Drop what the second look would keep alive of a model that the script has freed."""
        if self._second is not None:
            self._second.freed(training)

    @property
    def looks_again(self) -> bool:
        """Whether there will be a second look."""
        return self._second is not None

    def fault(self, fault: Exception) -> None:
        """Record an error in the library itself."""
        if is_out_of_memory(fault) or is_device_failure(fault):
            return  # the script's failure, not ours
        self.faults.append("".join(traceback.format_exception(fault)).strip())


def _losses(history: TrainingHistory | None) -> list[float]:
    return [] if history is None or history.losses is None else history.losses.values.tolist()


def not_examined(target: Any, why: str) -> Report:
    """Return the report of a training that was not examined."""
    stage = StageResult("examination", "not judged", why)
    return Report(f"examined {type(target).__name__}", stages=(stage,))


def nothing_trained(backward_passes: int, in_others: float) -> StageResult:
    """Say what was seen where no training was.

    Args:
        backward_passes: of PyTorch, that the script has made.
        in_others: seconds that its child processes have computed.
    """
    seen = []
    if backward_passes:
        seen.append(
            f"backward() was called {count_of(backward_passes, 'time')}, and no PyTorch optimizer stepped with "
            "a model: weights that a script updates by hand, or in a function compiled by torch.compile, are "
            "not watched, and nothing here says that they learn"
        )
    if in_others >= BUSY_S:
        seen.append(
            f"none was seen in this process; the processes that it started computed for {duration(in_others)}, "
            "and what trains in them is not watched: run diagnose on the script that they run, or train in this "
            "process; processes that train together are started by torchrun or accelerate, with -m diagnostics "
            "run before the script, or by torch.multiprocessing.spawn"
        )
    return dataclasses.replace(NOTHING_TRAINED, detail="; ".join(seen)) if seen else NOTHING_TRAINED


def short_trainings(count: int) -> StageResult:
    """Say how many trainings were not watched, because many were before and they were short."""
    from diagnostics.collectors.pytorch.discover.optimizers import MAX_MODELS, SHORT

    detail = (
        f"not watched: of models after the first {MAX_MODELS}, only trainings of more than {SHORT} steps are; "
        "run the script with fewer models to have them watched"
    )
    return StageResult(f"{count_of(count, 'short training')}", "not judged", detail)


def seconds_of_children() -> float:
    """Return the processor time of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


class Framework(Protocol):
    """What observes the calls of one framework. `arguments` and `options` are those of the call."""

    def model(self, target: Any) -> Any:
        """Return the model that is trained; None if it is not known yet."""

    def pipeline(self, *arguments: Any, **options: Any) -> Pipeline | None:
        """Return what to examine before the training; None if that must wait for its first batch."""

    def join(self, training: Training, train: Any, arguments: Any, options: Any) -> Joined:
        """Watch the training with a callback; `train`: the original method."""

    def keep(self, training: Training, target: Any, pipeline: Any) -> None:
        """Keep what the second look needs of an examined training."""


class TrainCalls:
    """Observes the methods that train.

    A trainer or model that is trained repeatedly is examined once, and watched the first few times.

    Args:
        trainings: each call is added here.
        suspended: each returns a context in which a finder of custom loops looks away: the loop within the method
            is the framework's, and none of the script's own.
    """

    def __init__(
        self,
        trainings: Trainings,
        suspended: tuple[Callable[[], contextlib.AbstractContextManager[None]], ...],
    ) -> None:
        self._trainings, self._suspended = trainings, suspended
        self._times: IdentityMap[Any, int] = IdentityMap()  # that each was trained

    def has_trained(self, target: Any) -> bool:
        """Whether a trainer or model was trained by one of the methods."""
        return target in self._times

    def observe(self, tap: TrainTap, framework: Framework) -> Unsubscribe:
        """Have each call of a method that trains examined first, and watched; return what ends it."""
        return tap.before.subscribe(partial(self._begins, framework))

    def _begins(self, framework: Framework, call: TrainCall, train: Callable[..., Any]) -> None:
        target = call.arguments[0]
        times = self._times[target] = self._times.get(target, 0) + 1
        for suspended in self._suspended:
            call.until_it_ends.enter_context(suspended())
        if times > OFTEN:
            return
        training = self._trainings.begin(Training(places=Places(training=script_line())), framework.model(target))
        if times == 1:
            self._examine(training, framework, call.arguments, call.options)
        joined = self._trainings.guard.attempt(framework.join, training, train, call.arguments, call.options)
        if joined is not None:
            training.watching, call.arguments, call.options, leave = joined
            call.until_it_ends.callback(leave)

    def _examine(self, training: Training, framework: Framework, arguments: Any, options: Any) -> None:
        from diagnostics.api.walk import Walk

        try:
            pipeline = framework.pipeline(*arguments, **options)
            if pipeline is None:
                training.awaits_batch = True
                return
            walk = Walk(pipeline)
            report = walk.report()
            if self._trainings.shows_evaluation:
                report = self._trainings.guard.attempt(_with_evaluation, report, pipeline) or report
            self._trainings.examined(training, report)
            training.walk = walk if pipeline.awaits_end else None
            training.awaits_batch = getattr(pipeline, "awaits_weights", False)
            with own_run(), pipeline.untouched():
                training.rows = pipeline.kept_rows()
            framework.keep(training, arguments[0], pipeline)
        except InvalidInput as reason:  # it trains in a way that cannot be examined
            training.examined = not_examined(arguments[0], str(reason))
        except Exception as fault:
            self._trainings.fault(fault)


def _with_evaluation(report: Report, pipeline: Pipeline) -> Report:
    """Show rows of the evaluation data as well, if they are there before the training."""
    from diagnostics.collectors.shared.batch_view import batch_view, split_parts
    from diagnostics.collectors.shared.vocabulary import scalings_in, tokenizer_in

    with own_run(), pipeline.untouched():
        if (batch := pipeline.evaluation_batch()) is None:
            return report
        sources = pipeline.data_sources()
        tokenizer, scalings = tokenizer_in(*sources), scalings_in(*sources)
        view = batch_view("evaluation", *split_parts(batch), tokenizer=tokenizer, scalings=scalings)
    return replace(report, batches=(*report.batches, view))
