"""What the second look keeps of each kind of training, and what it measures with that."""

from __future__ import annotations

import contextlib
import math
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.sandbox import SandboxEnded, can_sandbox, is_sandboxed, run_sandboxed
from diagnostics.collectors.probe import Probes
from diagnostics.collectors.shared.overfit_plan import ENOUGH
from diagnostics.engine.finding import Severity
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.trials import OverfitFacts

from .second_look import Look, Symptom

if TYPE_CHECKING:
    from diagnostics.collectors.isolation.guard import FaultGuard
    from diagnostics.collectors.keras.discover.step_answers import StepAnswers
    from diagnostics.collectors.keras.examine.kept_training import KeptTraining
    from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass
    from diagnostics.collectors.pytorch.dependence.positions import EvaluatedTexts
    from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstStepPipeline
    from diagnostics.collectors.pytorch.discover.training_batches import TrainingBatches
    from diagnostics.collectors.pytorch.examine.experiments import Run
    from diagnostics.collectors.pytorch.examine.kept_start import KeptStart
    from diagnostics.collectors.transformers.kept_run import KeptRun
    from diagnostics.facts.experiments import Experiments

NO_BACKWARD = "Autograd-and-Fork"  # PyTorch's refusal in a forked child, where the parent had threads for a GPU
NO_EXPERIMENT = "no experiment on copies could be run"
LARGEST_HELD = 16 * 2**20  # bytes of a Keras model that is kept after the script has freed it


def of_loop(
    model: Any,
    step: FirstStepPipeline,
    guard: FaultGuard,
    at_close: contextlib.ExitStack,
    on_kept: Callable[[TrainingBatches], object] = lambda _batches: None,
) -> Look | None:
    """Return what looks at a plain PyTorch loop, from its first step.

    Args:
        model: a weak twin of the loop's.
        step: its first.
        guard: keeps faults of this library out of the script.
        at_close: takes what ends the recording of its batches.
        on_kept: called with what keeps them, if copies may be trained on them. It lives as long as the look.
    """
    from diagnostics.collectors.pytorch.dependence.kept_pass import is_callable, keep_pass
    from diagnostics.collectors.pytorch.dependence.positions import EvaluatedTexts
    from diagnostics.collectors.pytorch.examine.kept_start import keep_start

    kept = keep_pass(step.seen, model) if is_callable(model) else None
    if kept is None:
        return None
    texts = EvaluatedTexts(step.model, guard)
    at_close.callback(texts.close)
    start = keep_start(model, kept, step)
    batches = None if start is None else _batches_of(step, start, guard)
    if batches is not None:
        close = weakref.WeakMethod(batches.close)  # a script may free each of many models, and so its batches
        at_close.callback(lambda: (end := close()) is not None and end())
        on_kept(batches)

    def look(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        found = _dependence(model, kept, deadline, texts)
        if isinstance(found, str) or (unlearned := symptom()) is None:
            return found
        if start is None:
            return found
        whole = math.isinf(unlearned.level)  # else it learned a part, and so can a batch
        again = _trained_again(model, start, unlearned.severity) if unlearned.severity and whole else ()
        if unlearned.explained:
            return *found, *again
        return *found, *again, *_experiments(model, start, batches, deadline, unlearned.level)

    return _unnoticed(model, look)


def _batches_of(step: FirstStepPipeline, start: KeptStart, guard: FaultGuard) -> TrainingBatches | None:
    """Record the batches of a loop from its first step on; None if no copy could be trained on them."""
    from diagnostics.collectors.pytorch.discover.training_batches import TrainingBatches

    if start.optimizer is None or not start.rate:
        return None
    return TrainingBatches(step, start.function, guard)


def _experiments(
    model: Any, start: KeptStart, batches: TrainingBatches | None, deadline: float, level: float
) -> tuple[Experiments | str]:
    """Run the experiments on copies of a loop; say why they cannot be run, if so."""
    from diagnostics.collectors.pytorch.examine.experiments import Run, at_its_beginning
    from diagnostics.collectors.pytorch.examine.kept_start import LOSSES
    from diagnostics.facts.loss_contracts import contract_of

    if batches is None or start.optimizer is None or not start.rate:
        return _tried("its optimizer cannot be rebuilt for a copy", deadline)
    fresh = at_its_beginning(model, start.values)
    if fresh is None:
        return _tried("its layers were replaced since its first step", deadline)
    function, seen = (start.function, batches.batches) if start.function else batches.recovered() or ("", [])
    if not function:
        return _tried("its loss is neither one call of a common loss function nor its formula", deadline)
    run = Run(
        model=fresh,
        given=start.kept.inputs,
        loss=LOSSES[function],
        contract=contract_of(function),
        options=start.options,
        optimizer=start.optimizer,
        name=start.name,
        rate=start.rate,
        batches=seen,
        value=start.value if start.function else None,
        idle=batches.idle,
        clip=batches.clip,
    )
    return _tried(run, deadline, level)


def _tried(run: Run | str, deadline: float, level: float = math.inf) -> tuple[Experiments | str]:
    """Run the experiments; `run`: what is known of a training, or why they cannot be run."""
    from diagnostics.collectors.pytorch.examine.experiments import experiments

    return _told(run if isinstance(run, str) else experiments(run, deadline, level=level))


def _told(found: Experiments | str) -> tuple[Experiments | str]:
    """Return what was found; or say in a sentence why there were no experiments."""
    return (f"{NO_EXPERIMENT}: {found}" if isinstance(found, str) else found,)


def _tried_on_keras(model: Any, kept: KeptTraining | str, deadline: float) -> tuple[Experiments | str]:
    from diagnostics.collectors.keras.examine.experiments import experiments

    return _told(kept if isinstance(kept, str) else experiments(model, kept, deadline))


def of_trainer(model: Any, pipeline: Any, run: KeptRun | None, arguments: Any) -> Look | None:
    """Return what looks at the model of a Trainer.

    Args:
        model: a weak twin of the Trainer's.
        pipeline: what examined a batch of it.
        run: keeps the batches of its training; None for a loss that is not known.
        arguments: of the Trainer.
    """
    from diagnostics.collectors.pytorch.dependence.kept_pass import forwards_by_library
    from diagnostics.collectors.transformers.kept_run import keep_step

    kept, own = keep_step(pipeline), not forwards_by_library(model)
    if kept is None:
        return None

    def look(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        found = _dependence(model, kept, deadline, tests_inputs=own)
        if run is None or isinstance(found, str) or (unlearned := symptom()) is None or unlearned.explained:
            return found
        return *found, *_tried(run.run_of(model, arguments), deadline, unlearned.level)

    return _unnoticed(model, look)


def _unnoticed(model: Any, look: Look) -> Look:
    """Return the look, made in a sandbox where the model's code might have side effects and one can be had."""

    def made(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        from diagnostics.collectors.isolation.harmless_code import objection_to_module
        from diagnostics.collectors.pytorch.model import uncompiled

        if objection_to_module(uncompiled(model)) is None or not can_sandbox():
            return look(deadline, symptom)
        try:
            return cast("tuple[Any, ...] | str", run_sandboxed(lambda: look(deadline, symptom), deadline))
        except SandboxEnded as how:
            return f"a copy of its model, in a process of its own, {how}"
        except OSError:  # no memory for another process
            return look(deadline, symptom)

    return made


def _dependence(
    model: Any, kept: KeptPass, deadline: float, texts: EvaluatedTexts | None = None, *, tests_inputs: bool = True
) -> tuple[Any, ...] | str:
    from diagnostics.collectors.pytorch.dependence.measure import measure_module

    evaluated = () if texts is None else texts.kept()
    largest = None if texts is None else texts.largest()
    found = measure_module(model, kept, deadline, tests_inputs=tests_inputs, evaluated=evaluated, largest=largest)
    generated = _generations(model, kept)
    return found if isinstance(found, str) and not generated else (found, *generated)


def _generations(model: Any, kept: KeptPass) -> tuple[Any, ...]:
    if "transformers.generation.utils" not in sys.modules:
        return ()
    from diagnostics.collectors.transformers.generations import generations

    found = generations.of(model, kept), generations.prompts_of(model, kept)
    return tuple(fact for fact in found if fact is not None)


def _trained_again(model: Any, start: KeptStart, surely: Severity) -> tuple[Any, ...]:
    """Train a copy on the first batch; nothing where that cannot be made again.

    Where it is not known that there is something to learn, a copy that fails proves nothing: then only one that
    learns its batch by heart counts, which clears the model.
    """
    from diagnostics.collectors.pytorch.examine.kept_start import NotAsBefore, train_again
    from diagnostics.collectors.shared.pipeline import CannotJudge

    if not start.function or not start.recognised.floor:
        return ()
    facts = list[Any]()
    try:
        facts.extend(train_again(model, start))
    except (NotAsBefore, CannotJudge):
        return ()
    except RuntimeError as error:
        if is_sandboxed() and NO_BACKWARD in str(error):
            return ()
        raise
    enough = ENOUGH * start.recognised.floor
    learned = any(isinstance(fact, OverfitFacts) and min(fact.losses) <= enough for fact in facts)
    return tuple(facts) if learned or surely != "note" else ()


def of_tape(loop: Any) -> Look | None:
    """Return what looks at a loop around a Keras optimizer, the only one of its script."""
    if loop.seen is None:
        return None

    def look(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        from diagnostics.collectors.keras.examine.tape_facts import tape_facts
        from diagnostics.collectors.keras.state import generators_of, global_states_kept

        with global_states_kept(*(g for part in loop.seen.parts for g in generators_of(part))):
            unlearned = symptom()
            return tape_facts(
                loop.seen, deadline, lambda: unlearned is not None and unlearned.severity is not None
            )

    return look


def of_keras(
    model: Any,
    pipeline: Any,
    guard: FaultGuard,
    reported: Callable[[Any, float], Any] = lambda _model, _deadline: None,
    on_kept: Callable[[KeptTraining], object] = lambda _kept: None,
    step_answers: Callable[[], StepAnswers | None] = lambda: None,
) -> Look | None:
    """Return what looks at a Keras model; None on other backends.

    Args:
        model: that was or will be trained.
        pipeline: what examined a batch of it. It is not kept: it holds the model, and a script may free many.
        guard: runs each check.
        reported: returns, of the model and until a deadline, what `evaluate` reported and the predictions for it.
        on_kept: called with what takes the batches of the training, if copies may be trained on them. It lives as
            long as the look.
        step_answers: returns what a train step of the script's was seen to compare.
    """
    if sys.modules["keras"].backend.backend() != "tensorflow":
        return None
    from diagnostics.collectors.keras import post_run
    from diagnostics.collectors.keras.dependence.subject import keep_batch, size_of
    from diagnostics.collectors.keras.post_run import PostRunCheck, TrainedModel

    batch = getattr(pipeline, "batch_parts", None)
    kept = None if batch is None else keep_batch(*batch)
    if kept is None:
        return None

    def run(_part: str, work: Callable[..., object], *arguments: Any) -> None:
        guard.attempt(work, *arguments)

    held = weakref.ref(model) if size_of(pipeline.model) > LARGEST_HELD else lambda: model
    began = guard.attempt(_keep_training, model)
    if began is not None and not isinstance(began, str):
        on_kept(began)
    trained = TrainedModel()
    checks = Probes(post_run, PostRunCheck, trained, run)
    checks.tell(PostRunCheck.on_examined, model, pipeline)

    def look(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        from diagnostics.collectors.keras.dependence.measure import measure
        from diagnostics.collectors.keras.dependence.subject import KerasSubject, objection
        from diagnostics.collectors.keras.model import describe_model
        from diagnostics.collectors.keras.state import generators_of, global_states_kept

        model = held()
        if model is None:
            return "the script has freed its model"
        traced = step_answers()
        same = None if traced is None else traced.facts(kept)
        if (why := objection(model)) is not None:
            return why if same is None else (DependenceFacts(sameness=same, trained=True),)
        with global_states_kept(*generators_of(model)):
            trained.model, trained.deadline = model, deadline
            trained.asked = KerasSubject(model, kept, deadline)
            early = checks.facts("early")
            facts = measure(trained.asked)
            if same is not None:  # a train step draws noise, a call need not
                asked = facts.sameness and replace(facts.sameness, known=same.known, terms=same.terms)
                facts = replace(facts, sameness=asked or same)
            compared = reported(model, deadline)
            further = () if compared is None else (compared,)
            found = replace(facts, trained=True), describe_model(model), *early, *checks.facts("end"), *further

        def later() -> tuple[Any, ...]:
            if began is None or (unlearned := symptom()) is None or unlearned.explained:
                return ()
            with global_states_kept(*generators_of(model)):
                return _tried_on_keras(model, began, deadline)

        return *found, later

    return look


def _keep_training(model: Any) -> KeptTraining | str:
    from diagnostics.collectors.keras.examine.kept_training import keep_training

    return keep_training(model)
