"""Observes an unmodified script: examines and watches its trainings, and keeps the reports."""

from __future__ import annotations

import contextlib
import functools
import inspect
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.guard import FaultGuard, is_device_failure, is_out_of_memory
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.engine.finding import SEVERITIES, Severity
from diagnostics.errors import InvalidInput
from diagnostics.report.build import extended
from diagnostics.report.report import Report, StageResult

from .handed_batches import HandedBatches
from .looks import of_keras, of_loop, of_trainer
from .second_look import Look, SecondLook

if TYPE_CHECKING:
    from diagnostics.api.keras_callback import KerasCallback
    from diagnostics.api.watch import Watch
    from diagnostics.collectors.keras.discover.evaluations import Evaluations
    from diagnostics.collectors.keras.discover.tape_loops import TapeLoopFinder
    from diagnostics.collectors.keras.discover.tape_watcher import TapeLoopWatcher
    from diagnostics.collectors.keras.examine.drawn_batches import FirstBatches
    from diagnostics.collectors.pytorch.discover.batch_replay import BatchRecorder
    from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstStepPipeline
    from diagnostics.collectors.pytorch.discover.loops import LoopFinder
    from diagnostics.collectors.shared.learnability import KeptRows
    from diagnostics.collectors.shared.pipeline import Pipeline
    from diagnostics.facts.data import RowOrder
    from diagnostics.facts.inputs import InputFacts

# Who watches, arguments and options to call a method with, and what to do at its end.
_Joined = tuple[Any, Any, Any, Callable[[], object]]
_Join = Callable[["Training", Any, Any, Any], _Joined]


UNLEARNED = ("not-learning", "constant-predictions")  # findings after which a copy is trained
OFTEN = 4  # trainings of one model that are watched; to begin takes a second, and some call `fit` for each step


@dataclass
class Training:
    """One training of the script.

    Attributes:
        examined: the report of the examination before it, or of its first step; None if it was not examined.
        watching: an object with the report of the watched run; None if it is not watched.
        awaits_batch: whether to examine it once it has drawn a batch.
        alone: whether no other training of the script steps in turn with this one.
        rows: some of its data, where its watcher does not see the targets.
        model: of a plain PyTorch loop, another object than the script's, with the same attributes.
    """

    examined: Report | None = None
    watching: Any = None
    awaits_batch: bool = False
    alone: bool = True
    rows: KeptRows | None = None
    model: Any = None


@dataclass
class _Over:
    """Replaces the watch of a training that is over: keeps its report and nothing else."""

    final: Report

    def _report(self) -> Report:
        return self.final


@dataclass
class _TapeWatch:
    """Reports on a custom loop around a Keras optimizer."""

    loop: TapeLoopWatcher

    def _report(self) -> Report:
        from diagnostics.api.watch_report import watch_report

        seen = self.loop.difference
        return watch_report(self.loop, self.loop.name, () if seen is None else (seen,))


class ScriptObserver:
    """Observes the script from the creation of this object until `close`.

    A Hugging Face `Trainer` is examined when `train` is called. A compiled Keras model is examined when `fit` is
    called, or once `fit` has drawn a batch if its data cannot be read without side effects. Both are watched from
    then on. A custom loop around a Keras optimizer is watched from its first step on; a plain PyTorch loop from
    its first forward pass on, and its first step is examined while it runs. No framework is imported that the
    script does not import, and no error of this library is raised into the script.

    A trainer or model that is trained repeatedly is examined once, and watched the first few times.

    Attributes:
        trainings: in the order in which they began.
        faults: errors in the library itself, as tracebacks.
    """

    def __init__(
        self,
        on_examined: Callable[[Report], object] = lambda report: None,
        *,
        keep_batches: bool = False,
        first_batches: Path | None = None,
        looks_again: bool = False,
    ) -> None:
        """Start to observe.

        Args:
            on_examined: called with each report of an examination, before that training.
            keep_batches: whether to keep the latest batches of PyTorch's loaders, for `save_batches`.
            first_batches: a file of `save_batches`, whose batches the first loader yields first.
            looks_again: whether to keep what `look_again` needs.
        """
        self._second = SecondLook() if looks_again else None
        self.trainings: list[Training] = []
        self.faults: list[str] = []
        self._on_examined = on_examined
        self._guard = FaultGuard(on_fault=self._fault)
        self._loops: LoopFinder[Watch] | None = None
        self._of_loops: IdentityMap[Any, Training] = IdentityMap()  # by watch
        self._tapes: TapeLoopFinder | None = None
        keep = None if self._second is None else self._second.keep
        self._handed = HandedBatches(self._guard, on_examined, lambda model: model in self._times, keep)
        self._evaluations: Evaluations | None = None
        self._times: IdentityMap[Any, int] = IdentityMap()  # that each was trained
        self._patches, self._at_close = Patches(), contextlib.ExitStack()
        self._at_close.callback(self._patches.undo)
        self._keep_batches, self._first_batches = keep_batches, first_batches
        self._kept: BatchRecorder | None = None
        for module, then in (
            ("torch", self._with_torch),
            ("transformers.trainer", self._with_transformers),
            ("keras.src.backend.tensorflow.trainer", self._with_keras),
            ("keras.src.backend.torch.trainer", self._with_keras_on_torch),
            ("keras.src.backend.jax.trainer", self._with_keras_on_jax),
        ):
            self._at_close.callback(after_import(module, then))  # at once, if it was imported before

    @property
    def examined(self) -> list[Report]:
        """One report for each training that was examined, in order."""
        return [training.examined for training in self.trainings if training.examined is not None]

    def watched(self) -> list[Report]:
        """Return a report of every watched training so far."""
        return [report for training in self.trainings if (report := self.course(training)) is not None]

    def course(self, training: Training, complete: bool = True) -> Report | None:
        """Return a report of one training so far; None if it was not watched.

        Args:
            training: one of `trainings`.
            complete: whether it ended by itself.
        """
        report: Report | None = (
            None if training.watching is None else self._guard.attempt(training.watching._report)
        )
        if report is None:
            return None
        from diagnostics.report.build import judged_as_a_whole

        if training.rows is not None and report.history is not None:
            targets = self._guard.attempt(training.rows.history, report.history.losses)
            report = replace(report, facts=(*report.facts, *([] if targets is None else [targets])))
        judged: Report | None = self._guard.attempt(
            judged_as_a_whole, report, training.examined, complete=complete, alone=training.alone
        )
        return _unaided(judged or report)

    @property
    def backward_passes(self) -> int:
        """How many backward passes a script has made with PyTorch."""
        return 0 if self._loops is None else self._loops.backward_passes

    def save_batches(self, path: Path) -> int:
        """Write the latest batches to a file, and return their number; 0 if there are none."""
        return 0 if self._kept is None else self._kept.save(path)

    def look_again(self, seconds: float, complete: bool = True) -> StageResult | None:
        """Examine the models as the script has left them, after `close`; return the stage for the report.

        Args:
            seconds: after which to stop.
            complete: whether the script ended by itself.
        """
        if self._second is None:
            return None
        stage: StageResult | None = self._guard.attempt(
            self._second.look, self.trainings, seconds, lambda training: self._symptom(training, complete)
        )
        return stage

    def _symptom(self, training: Training, complete: bool) -> Severity | None:
        """Return the worst severity of the findings that say that a training did not learn; None if none does."""
        course = self.course(training, complete)
        reports = [report for report in (training.examined, course) if report is not None]
        said = {f.severity for report in reports for f in report.findings if f.rule in UNLEARNED}
        return min(said, key=SEVERITIES.index, default=None)

    def close(self) -> None:
        """Remove all hooks. The reports stay available."""
        self._at_close.close()

    def _with_torch(self, torch: ModuleType) -> None:
        if hasattr(torch, "nn"):  # or the script has its own `torch.py`
            self._guard.attempt(self._find_loops)

    def _find_loops(self) -> None:
        self._with_loaders()
        from diagnostics.collectors.pytorch.discover.loops import LoopFinder

        self._loops = LoopFinder(
            self._watch,
            self._fault,
            self._examine_step,
            self._over,
            self._examine_evaluation,
            self._in_turn,
        )
        self._at_close.callback(self._loops.close)

    def _with_loaders(self) -> None:
        if self._keep_batches:
            from diagnostics.collectors.pytorch.discover.batch_replay import BatchRecorder

            self._kept = BatchRecorder()
            self._at_close.callback(self._kept.close)
        if self._first_batches is not None:
            from diagnostics.collectors.pytorch.discover.batch_replay import BatchPlayer

            self._at_close.callback(BatchPlayer(self._first_batches).close)

    def _watch(self, model: Any, optimizers: list[Any]) -> Watch:
        from diagnostics.api.watch import watch
        from diagnostics.collectors.isolation.weak_twin import weak_twin

        # A script that trains many models, one after the other, must be able to free each of them.
        twin = weak_twin(model)
        watching = watch(twin, [weak_twin(optimizer) for optimizer in optimizers])
        self.trainings.append(Training(watching=watching, model=None if twin is model else twin))
        self._of_loops[watching] = self.trainings[-1]
        return watching

    def _over(self, watching: Any) -> None:
        training = self._of_loops[watching]
        training.watching = _Over(watching.release())
        training.model = None
        if self._second is not None:
            self._second.freed(training)

    def _in_turn(self, watching: Any) -> None:
        self._of_loops[watching].alone = False

    def _examine_step(self, watching: Any, step: FirstStepPipeline) -> None:
        from diagnostics.api.examine import walk

        training = self._of_loops[watching]
        training.examined = walk(step)
        self._on_examined(training.examined)
        if training.model is not None:
            self._keep(training, functools.partial(of_loop, training.model, step), training.model)

    def _keep(self, training: Training, look: Callable[[], Look | None], model: Any = None) -> None:
        """Keep what the second look needs of a training; see `SecondLook.keep`."""
        if self._second is not None and self._second.wants(training):
            self._second.keep(training, self._guard.attempt(look), model)

    def _examine_evaluation(self, watching: Any, facts: tuple[Any, ...]) -> None:
        """Evaluate the rules on facts that are known only when the model is evaluated, or after its training."""
        training = self._of_loops[watching]
        if training.examined is not None:
            training.examined = extended(training.examined, facts)
        elif isinstance(training.watching, _Over):
            training.watching.final = extended(training.watching.final, facts)

    def _with_transformers(self, module: ModuleType) -> None:
        self._look_on(module.Trainer, "train", _of_trainer, self._join_trainer)

    def _with_keras(self, module: ModuleType) -> None:
        self._guard.attempt(self._find_tapes)
        self._look_on(module.TensorFlowTrainer, "fit", _of_keras_fit, self._join_fit)
        self._patches.around(module.TensorFlowTrainer, "train_on_batch", self._handed.around)
        self._guard.attempt(self._find_evaluations, module.TensorFlowTrainer)

    def _find_tapes(self) -> None:
        from diagnostics.collectors.keras.discover.tape_loops import TapeLoopFinder

        self._tapes = TapeLoopFinder(self._watch_tape, self._fault)
        self._at_close.callback(self._tapes.close)

    def _find_evaluations(self, trainer: type) -> None:
        from diagnostics.collectors.keras.discover.evaluations import Evaluations

        self._evaluations = Evaluations(trainer, self._patches, self._guard)

    def _watch_tape(self, loop: TapeLoopWatcher) -> None:
        self.trainings.append(Training(watching=_TapeWatch(loop)))
        self._handed.began(loop.optimizer, self.trainings[-1])

    def _with_keras_on_torch(self, module: ModuleType) -> None:
        self._look_on(module.TorchTrainer, "fit", _of_keras_fit, self._join_fit)

    def _with_keras_on_jax(self, module: ModuleType) -> None:
        self._look_on(module.JAXTrainer, "fit", _of_keras_fit, self._join_fit)

    def _look_on(self, owner: Any, method: str, pipeline_of: Callable[..., Pipeline | None], join: _Join) -> None:
        """Have each call of a method that trains examined first, and watched."""
        run = self

        def make(train: Callable[..., Any]) -> Callable[..., Any]:
            def observed(*arguments: Any, **options: Any) -> Any:
                times = run._times[arguments[0]] = run._times.get(arguments[0], 0) + 1
                with contextlib.ExitStack() as until_it_ends:
                    for finder in (run._loops, run._tapes):
                        if finder is not None:  # the loop within is the framework's, not one of the script's own
                            until_it_ends.enter_context(finder.suspended())
                    if times > OFTEN:
                        return train(*arguments, **options)
                    training = Training()
                    run.trainings.append(training)
                    if times == 1:
                        run._examine(training, pipeline_of, arguments, options)
                    joined = run._guard.attempt(join, training, train, arguments, options)
                    if joined is not None:
                        training.watching, arguments, options, leave = joined
                        until_it_ends.callback(leave)
                    return train(*arguments, **options)

            return observed

        self._patches.around(owner, method, make)

    def _join_trainer(self, training: Training, _train: Any, arguments: Any, options: Any) -> _Joined:
        from diagnostics.api.trainer_callback import TrainerCallback

        callback, trainer = TrainerCallback(quiet=True), arguments[0]
        if training.awaits_batch:
            callback._on_first_step = functools.partial(self._look_at_first_step, training)
        trainer.add_callback(callback)

        def leave() -> None:
            trainer.remove_callback(callback)
            callback._safely("end", callback._close)  # a training that failed has had no end

        return callback, arguments, options, leave

    def _look_at_first_step(self, training: Training, trainer: Any, inputs: Any) -> Any:
        """Examine the first step while it runs, where a Trainer's code must not be called outside its training."""
        from diagnostics.api.examine import walk
        from diagnostics.collectors.transformers.call_safety import objection
        from diagnostics.collectors.transformers.first_step import TrainerStepObserver

        def examine(step: Any) -> None:
            training.examined = walk(step)
            self._on_examined(training.examined)
            self._keep_of_trainer(training, step)

        return TrainerStepObserver(trainer, inputs, why=objection(trainer) or "", deliver=examine)

    def _keep_of_trainer(self, training: Training, pipeline: Any) -> None:
        from diagnostics.collectors.isolation.weak_twin import weak_twin

        model, second = pipeline.trainer.model, self._second
        twin = None if model is None else weak_twin(model)
        if second is None or twin is None or twin is model:
            return
        self._keep(training, functools.partial(of_trainer, twin, pipeline), twin)
        weakref.finalize(model, self._guard.attempt, second.freed, training).atexit = False

    def _join_fit(self, training: Training, fit: Any, arguments: Any, options: Any) -> _Joined:
        from diagnostics.api.keras_callback import KerasCallback

        callback, call = KerasCallback(quiet=True), inspect.signature(fit).bind(*arguments, **options)
        given: Any = call.arguments.get("callbacks") or []
        if hasattr(given, "on_train_begin") and hasattr(given, "append"):  # a CallbackList
            given.append(callback)
        else:
            given = [*given] if isinstance(given, list | tuple) else [given]
            call.arguments["callbacks"] = [*given, callback]
        compared = self._compare_evaluations(training, callback, arguments[0], call.arguments)

        def end() -> None:
            compared()
            self._guard.attempt(self._add_difference, training, arguments[0])

        if not training.awaits_batch:
            return callback, call.args, call.kwargs, end
        callback._first_batches = first = self._await_batches(training, *_given_to_fit(*arguments, **options))

        def leave() -> None:
            first.close()
            end()

        return callback, call.args, call.kwargs, leave

    def _add_difference(self, training: Training, model: Any) -> None:
        """Add what the loss subtracts in a step of the user's own; the losses of others are recomputed."""
        from diagnostics.collectors.keras.model import has_own_train_step

        seen = None if self._tapes is None else self._tapes.difference()
        if seen is not None and training.examined is not None and has_own_train_step(model):
            training.examined = extended(training.examined, (seen,))

    def _compare_evaluations(
        self, training: Training, callback: KerasCallback, model: Any, given: dict[str, Any]
    ) -> Callable[[], object]:
        """Return what compares, at the end of `fit`, its rows with those of its validation data."""
        if self._evaluations is None:
            return lambda: None
        validation = given.get("validation_data")
        if isinstance(validation, tuple | list) and validation:
            validation = (validation[0], None)

        def deliver(facts: InputFacts | RowOrder) -> None:
            from diagnostics.collectors.keras.model import describe_model

            if training.examined is not None:
                training.examined = extended(training.examined, (facts, describe_model(model)))

        ends = self._evaluations.fit_begins(model, validation, callback._training_inputs, deliver)
        names = ("validation_split", "shuffle", "batch_size")
        split, shuffle, size = (
            given.get(name, default) for name, default in zip(names, (0, True, None), strict=True)
        )
        return lambda: (
            ends(),
            self._guard.attempt(_deliver_order, deliver, model, given.get("y"), split, shuffle, size),
        )

    def _await_batches(
        self, training: Training, model: Any, data: Any, _evaluation: Any, class_weights: bool | None
    ) -> FirstBatches:
        from diagnostics.api.examine import walk
        from diagnostics.collectors.keras.examine.drawn_batches import Listeners, first_batches

        def examine(pipeline: Pipeline) -> None:
            later = walk(pipeline)
            training.examined = later if training.examined is None else _continued(training.examined, later)
            self._on_examined(training.examined)
            self._keep(training, functools.partial(of_keras, model, pipeline))

        def add(facts: tuple[Any, ...], stage: str) -> None:
            if training.examined is not None:
                training.examined = extended(training.examined, facts, stage)

        def unseen(why: str) -> None:
            training.examined = training.examined or _not_examined(model, why)

        return first_batches(model, data, class_weights, Listeners(examine, add, unseen, self._fault))

    def _examine(
        self, training: Training, pipeline_of: Callable[..., Pipeline | None], arguments: Any, options: Any
    ) -> None:
        from diagnostics.api.examine import walk

        try:
            pipeline = pipeline_of(*arguments, **options)
            if pipeline is None:
                training.awaits_batch = True
                return
            training.examined = walk(pipeline)
            self._on_examined(training.examined)
            training.awaits_batch = getattr(pipeline, "awaits_weights", False)
            with own_run(), pipeline.untouched():
                training.rows = pipeline.kept_rows()
            if hasattr(pipeline, "trainer"):
                self._keep_of_trainer(training, pipeline)
            elif not training.awaits_batch:
                self._keep(training, functools.partial(of_keras, arguments[0], pipeline))
        except InvalidInput as reason:  # it trains in a way that cannot be examined
            training.examined = _not_examined(arguments[0], str(reason))
        except Exception as fault:
            self._fault(fault)

    def _fault(self, fault: Exception) -> None:
        if is_out_of_memory(fault) or is_device_failure(fault):
            return  # the script's failure, not ours
        self.faults.append("".join(traceback.format_exception(fault)).strip())


def _unaided(report: Report) -> Report:
    """Remove the advice to call `watch.step(loss)`, since the script does not call `watch`."""
    from diagnostics.api.watch_report import NO_LOSS

    stages = (
        replace(stage, detail="none was seen") if stage.detail == NO_LOSS else stage for stage in report.stages
    )
    return replace(report, stages=tuple(stages))


def _of_trainer(trainer: Any, *_: Any, **__: Any) -> Pipeline | None:
    """Return the pipeline to examine before training; None if only its first step can be examined."""
    from diagnostics.collectors.transformers.call_safety import objection, objection_to_metric, objection_to_rows
    from diagnostics.collectors.transformers.pipeline import TrainerPipeline

    if objection(trainer) is not None:
        return None
    evaluation = trainer.eval_dataset
    splits = evaluation.values() if isinstance(evaluation, dict) else (evaluation,)
    return TrainerPipeline(
        trainer,
        objection_to_metric=objection_to_metric(trainer),
        compares_splits=all(objection_to_rows(split) is None for split in splits),
    )


def _given_to_fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    *others: Any,
    validation_data: Any = None,
    class_weight: Any = None,
    sample_weight: Any = None,
    **_: Any,
) -> tuple[Any, Any, Any, bool | None]:
    """Return model, data, evaluation data, and whether there are class weights, from the arguments of `fit`."""
    data = x if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
    class_weights = True if class_weight else None if others else False  # who knows what was given by place
    return model, data, validation_data, class_weights


def _deliver_order(deliver: Callable[[RowOrder], object], model: Any, y: Any, *options: Any) -> None:
    from diagnostics.collectors.keras.row_order import row_order

    order = row_order(model, y, *options)
    if order is not None:
        deliver(order)


def _of_keras_fit(*arguments: Any, **options: Any) -> Pipeline | None:
    """Return the pipeline of a `fit` whose data can be read without side effects; None for any other."""
    import keras

    if keras.backend.backend() != "tensorflow":
        return None
    from diagnostics.collectors.keras.examine.build import keras_pipeline
    from diagnostics.collectors.keras.replayable import can_be_read

    model, data, evaluation, class_weights = _given_to_fit(*arguments, **options)
    if not can_be_read(data):
        return None
    if not can_be_read(evaluation):
        evaluation = None
    pipeline = keras_pipeline(model, data, None, None, evaluation, class_weights)
    pipeline.preprocesses = False  # a model of KerasHub has done so before it calls this `fit`
    return pipeline


def _continued(early: Report, later: Report) -> Report:
    """Join an examination that found no weights, and the one that was made once they were there."""
    known = {result.name: result for result in early.stages if result.status == "passed"}
    reported = {finding.rule for finding in early.findings}
    judged = early.judged | later.judged
    return replace(
        later,
        findings=(*early.findings, *(finding for finding in later.findings if finding.rule not in reported)),
        stages=tuple(known.get(result.name, result) for result in later.stages),
        judged=judged,
        not_applicable={name: why for name, why in later.not_applicable.items() if name not in judged},
    )


def _not_examined(target: Any, why: str) -> Report:
    stage = StageResult("examination", "not judged", why)
    return Report(f"examined {type(target).__name__}", stages=(stage,))
