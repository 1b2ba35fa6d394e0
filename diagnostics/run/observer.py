"""Observes an unmodified script: examines and watches its trainings, and keeps the reports."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.collectors.isolation.internal import without_collection
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.keras.discover.unread_losses import LayerLosses
from diagnostics.collectors.preprocessing_fits import MODULE as ENCODERS
from diagnostics.collectors.scikit_learn import MODULE as METRICS
from diagnostics.collectors.system.supported import unsupported
from diagnostics.config import batch_shown
from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import SEVERITIES
from diagnostics.facts.experiments import STOOD_AT
from diagnostics.facts.library_messages import LibraryMessage
from diagnostics.report.contents import StageResult
from diagnostics.report.merge import TrainingReports
from diagnostics.report.report import Report
from diagnostics.run.observers.training import TrainCalls
from diagnostics.taps import keras, transformers
from diagnostics.taps.tap import TrainTap

from .extra import Extra
from .library_frames import hide_library_frames
from .observers.keras_fits import FitObserver
from .observers.keras_loops import KerasLoopObserver
from .observers.library_messages import LibraryMessageObserver
from .observers.loops import LoopObserver
from .observers.measured_answers import MetricObserver
from .observers.trainers import TrainerObserver
from .observers.training import Training, Trainings
from .second_look import MOST_LOOPS, SecondLook, Unlearned, budget

UNLEARNED = ("not-learning", "constant-predictions")  # findings after which a copy is trained
GENERATION = "transformers.generation.utils"
SUSPECTED = (*NO_LEARNING, "learning-rate-too-low", "learning-rate-too-high", "dead-units")
"""Findings whose cause an experiment may show."""


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
        unsupported: by package, why it is not observed: it is too old.
        loops: of plain PyTorch.
    """

    def __init__(
        self,
        on_examined: Callable[[Report], object] = lambda report: None,
        *,
        keep_batches: bool = False,
        first_batches: Path | None = None,
        looks_again: bool = False,
        extras: Sequence[Extra] = (),
        on_broken: Callable[[], object] | None = None,
        shows_batch: bool | None = None,
    ) -> None:
        """Start to observe.

        Args:
            on_examined: called with each report of an examination, before that training.
            keep_batches: whether to keep the latest batches of PyTorch's loaders, for `save_batches`.
            first_batches: a file of `save_batches`, whose batches the first loader yields first.
            looks_again: whether to keep what `look_again` needs.
            extras: what hooks into the frameworks first.
            on_broken: called once something of a step is not finite; see `TorchWatcher`. None for nothing.
            shows_batch: whether reports show the first batches; None for what the project's settings say.
        """
        self._second = SecondLook() if looks_again else None
        self._trainings = Trainings(on_examined, self._second, on_broken)
        self._trainings.shows_evaluation = any(extra.shows_evaluation for extra in extras)
        self.trainings, self.faults = self._trainings.all, self._trainings.faults
        self.unsupported: dict[str, str] = {}
        self._patches, self._at_close = Patches(), contextlib.ExitStack()
        self._at_close.callback(self._patches.undo)
        if shows_batch is not None:
            self._at_close.enter_context(batch_shown(shows_batch))
        hide_library_frames(self._patches)
        self._library_messages = LibraryMessageObserver(self._patches, self._trainings.guard)
        for extra in extras:
            extra.observe(self._at_close)
        self.loops = LoopObserver(
            self._trainings,
            self._at_close,
            keep_batches=keep_batches,
            first_batches=first_batches,
            on_call=next((each.on_module_call for each in extras if each.on_module_call is not None), None),
        )
        self._losses = LayerLosses(self._trainings.guard)
        self._keras_loops = KerasLoopObserver(
            self._trainings, self._at_close, lambda m: self._calls.has_trained(m), self._losses
        )
        suspended = self.loops.suspended, self._keras_loops.suspended
        self._calls = TrainCalls(self._trainings, suspended)
        self._trainers = TrainerObserver(self._trainings, self._at_close)
        self._fits = FitObserver(self._trainings, self._keras_loops.graph, self._losses, self._keras_loops.made_at)
        self._metrics = MetricObserver(self._trainings, self._at_close)
        for module, then in (
            ("torch", self._with_torch),
            ("fastai.optimizer", partial(self._trainings.guard.attempt, self.loops.with_fastai)),
            ("fastai.callback.schedule", partial(self._trainings.guard.attempt, self.loops.with_rate_search)),
            ("transformers.trainer", self._with_transformers),
            ("transformers.modeling_utils", partial(self._trainings.guard.attempt, self._with_models)),
            ("keras", lambda _module: None),  # Keras 2, which is not supported, has none of the modules below
            (GENERATION, partial(self._trainings.guard.attempt, self._with_generation)),
            (keras.add_loss.module, partial(self._trainings.guard.attempt, self._with_layers)),
            (keras.fit.module, self._with_keras),
            (keras.fit_on_torch.module, partial(self._with_fits, keras.fit_on_torch)),
            (keras.fit_on_jax.module, partial(self._with_fits, keras.fit_on_jax)),
            (METRICS, partial(self._trainings.guard.attempt, self._metrics.find)),
            (ENCODERS, partial(self._trainings.guard.attempt, self._metrics.find_encoders)),
            (
                keras.vectorizer_adapt.module,
                partial(self._trainings.guard.attempt, self._metrics.find_vectorizers),
            ),
        ):
            # At once, if it was imported before.
            self._at_close.callback(after_import(module, partial(self._if_supported, module, then)))

    @property
    def examined(self) -> list[Report]:
        """One report for each training that was examined, in order."""
        return [training.examined for training in self.trainings if training.examined is not None]

    def watched(self) -> list[Report]:
        """Return a report of every watched training so far."""
        return [report for training in self.trainings if (report := self.course(training)) is not None]

    def reports(self, complete: bool = True) -> list[TrainingReports]:
        """Return the reports of every training so far; `complete`: whether the script ended by itself.

        What a library said counts for the last training that was watched.
        """
        from diagnostics.report.library_findings import named_by_libraries

        courses = {id(each): self.course(each, complete) for each in self.trainings}
        reports = [
            TrainingReports(
                each.examined,
                courses[id(each)],
                each.trained_alone,
                each.places,
                tuple(course for later in self._trainings.continued(each) if (course := courses[id(later)])),
                tuple(course for earlier in each.before() if (course := courses[id(earlier)])),
            )
            for each in self.trainings
        ]
        told = self._trainings.guard.attempt(named_by_libraries, self.library_messages)
        last = next((each for each in reversed(reports) if each.watched is not None), None)
        if not told or last is None or last.watched is None:
            return reports
        watched = replace(last.watched, findings=(*told, *last.watched.findings))
        return [replace(each, watched=watched) if each is last else each for each in reports]

    def course(self, training: Training, complete: bool = True) -> Report | None:
        """Return a report of one training so far; None if it was not watched.

        Args:
            training: one of `trainings`.
            complete: whether it ended by itself.
        """
        report: Report | None = (
            None if training.watching is None else self._trainings.guard.attempt(training.watching._report)
        )
        if report is None:
            return None
        from diagnostics.report.build import extended, judged_as_a_whole

        if training.rows is not None and report.history is not None:
            targets = self._trainings.guard.attempt(training.rows.history, report.history.losses)
            beside = training.beside if training.trained_alone else ()
            report = report if targets is None else extended(report, (targets, *beside))
        if training.with_course:
            report = extended(report, training.with_course)
        judged: Report | None = self._trainings.guard.attempt(
            judged_as_a_whole, report, training.examined, complete=complete, trained_alone=training.trained_alone
        )
        return _unaided(replace(judged or report, time=report.time or self.loops.times))

    @property
    def library_messages(self) -> tuple[LibraryMessage, ...]:
        """What the libraries of the script reported so far."""
        return self._library_messages.messages

    def look_again(self, wanted: float | None, ran: float = 0.0, complete: bool = True) -> StageResult | None:
        """Examine the models as the script has left them, after `close`; return the stage for the report.

        Args:
            wanted: seconds after which to stop; see `budget`.
            ran: the seconds that the script ran.
            complete: whether the script ended by itself.
        """
        if self._second is None:
            return None
        kept = [] if wanted is not None else self.trainings[:MOST_LOOPS]
        symptoms = [self._trainings.guard.attempt(self._symptom, training, complete) for training in kept]
        unlearned = any(symptom is not None for symptom in symptoms)
        seconds = budget(wanted, ran, unlearned)
        self._keras_loops.keep()
        stage: StageResult | None = self._trainings.guard.attempt(
            self._second.look, self.trainings, seconds, lambda training: self._symptom(training, complete)
        )
        return stage

    def _symptom(self, training: Training, complete: bool) -> Unlearned | None:
        """Return how a training shows that it did not learn; None if nothing does."""
        from diagnostics.report.doubts import stands_still
        from diagnostics.rules.shared.whole_run import STEPS

        course = self.course(training, complete)
        found = [f for report in (training.examined, course) if report is not None for f in report.findings]
        severity = min((f.severity for f in found if f.rule in UNLEARNED), key=SEVERITIES.index, default=None)
        steps = 0 if course is None or course.history is None else course.history.steps.total_steps
        whole = complete and training.trained_alone and steps >= STEPS
        if severity is None and not (whole and course is not None and stands_still(course)):
            return None
        explained = any(f.severity != "note" and f.rule not in SUSPECTED for f in found)
        levels = [float(f.evidence.get(STOOD_AT, math.inf)) for f in found if f.rule in UNLEARNED]
        return Unlearned(severity, explained or not whole, max(levels, default=math.inf))

    def close(self) -> None:
        """Remove all hooks. The reports stay available."""
        self._at_close.close()

    def _if_supported(self, name: str, then: Callable[[ModuleType], object], module: ModuleType) -> None:
        """Observe a framework, unless its release is older than what this library was made for."""
        package = name.partition(".")[0]
        why: str | None = self._trainings.guard.attempt(unsupported, package)
        if why is None:
            with without_collection():  # of what importing our modules makes
                then(module)
        elif why not in self.unsupported.values():  # fastai and transformers run on PyTorch, which may be it
            self.unsupported[package] = why

    def _with_torch(self, torch: ModuleType) -> None:
        if hasattr(torch, "nn"):  # or the script has its own `torch.py`
            self._trainings.guard.attempt(self.loops.find)
            self._trainings.guard.attempt(self._with_loads)
            self._trainings.guard.attempt(self._metrics.find_passes)

    def _with_fits(self, fit: TrainTap, _module: ModuleType) -> None:
        self._at_close.callback(self._calls.observe(fit, self._fits))

    def _with_transformers(self, _module: ModuleType) -> None:
        self._at_close.callback(self._calls.observe(transformers.train, self._trainers))
        self._trainings.guard.attempt(self._metrics.find_trainers)

    def _with_models(self, _module: ModuleType) -> None:
        from diagnostics.collectors.pytorch.new_weights import embedding_rows, new_weights

        self._at_close.callback(embedding_rows.listen(self._trainings.guard))
        self._at_close.callback(new_weights.listen_to_transformers(self._trainings.guard))

    def _with_loads(self) -> None:
        from diagnostics.collectors.pytorch.new_weights import new_weights

        self._at_close.callback(new_weights.listen(self._trainings.guard))

    def _with_generation(self, _module: ModuleType) -> None:
        from diagnostics.collectors.transformers.generations import generations

        self._at_close.callback(generations.listen(self._trainings.guard))

    def _with_layers(self, _module: ModuleType) -> None:
        self._at_close.callback(self._losses.listen())

    def _with_keras(self, _module: ModuleType) -> None:
        self._trainings.guard.attempt(self._keras_loops.find)
        self._at_close.callback(self._calls.observe(keras.fit, self._fits))
        self._at_close.callback(self._keras_loops.handed.listen())
        self._at_close.callback(self._losses.listen_to_tests())
        self._trainings.guard.attempt(self._fits.find_evaluations, self._at_close)
        if self._fits.instances is not None:
            self._keras_loops.compare(self._fits.instances)


def _unaided(report: Report) -> Report:
    """Remove the advice on what to give to `watch`, which the script does not call."""
    from diagnostics.api.watch_report import NO_LOSS, NO_PASS

    stages = (
        replace(stage, detail="none was seen") if stage.detail in (NO_LOSS, NO_PASS) else stage
        for stage in report.stages
    )
    return replace(report, stages=tuple(stages))
