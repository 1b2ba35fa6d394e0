"""What the second look keeps of each kind of training, and what it measures with that."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from diagnostics.collectors.isolation.sandbox import SandboxEnded, can_sandbox, is_sandboxed, run_sandboxed
from diagnostics.collectors.shared.overfit_plan import ENOUGH
from diagnostics.engine.finding import Severity
from diagnostics.facts.trials import OverfitFacts

from .second_look import Look, Symptom

if TYPE_CHECKING:
    from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass
    from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstStepPipeline
    from diagnostics.collectors.pytorch.examine.kept_start import KeptStart

NO_BACKWARD = "Autograd-and-Fork"  # PyTorch's refusal in a forked child, where the parent had threads for a GPU
LARGEST_HELD = 16 * 2**20  # bytes of a Keras model that is kept after the script has freed it


def of_loop(model: Any, step: FirstStepPipeline) -> Look | None:
    """Return what looks at a plain PyTorch loop, from its first step; `model`: a weak twin of the loop's."""
    from diagnostics.collectors.pytorch.dependence.kept_pass import is_callable, keep_pass
    from diagnostics.collectors.pytorch.examine.kept_start import keep_start

    kept = keep_pass(step.seen) if is_callable(model) else None
    if kept is None:
        return None
    start = keep_start(model, kept, step)

    def look(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        found = _dependence(model, kept, deadline)
        if start is None or isinstance(found, str) or (surely := symptom()) is None:
            return found
        return *found, *_trained_again(model, start, surely)

    return _unnoticed(model, look)


def of_trainer(model: Any, pipeline: Any) -> Look | None:
    """Return what looks at the model of a Trainer, from what examined a batch of it; `model`: a weak twin."""
    from diagnostics.collectors.pytorch.dependence.kept_pass import forwards_by_library
    from diagnostics.collectors.transformers.kept_step import keep_step

    kept, own = keep_step(pipeline), not forwards_by_library(model)
    if kept is None:
        return None
    return _unnoticed(model, lambda deadline, _symptom: _dependence(model, kept, deadline, tests_inputs=own))


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
    model: Any, kept: KeptPass, deadline: float, *, tests_inputs: bool = True
) -> tuple[Any, ...] | str:
    from diagnostics.collectors.pytorch.dependence.measure import measure_module

    found = measure_module(model, kept, deadline, tests_inputs=tests_inputs)
    return found if isinstance(found, str) else (found,)


def _trained_again(model: Any, start: KeptStart, surely: Severity) -> tuple[Any, ...]:
    """Train a copy on the first batch; nothing where that cannot be made again.

    Where it is not known that there is something to learn, a copy that fails proves nothing: then only one that
    learns its batch by heart counts, which clears the model.
    """
    from diagnostics.collectors.pytorch.examine.kept_start import NotAsBefore, train_again
    from diagnostics.collectors.shared.pipeline import CannotJudge

    facts = list[Any]()
    try:
        facts.extend(train_again(model, start))
    except (NotAsBefore, CannotJudge):
        return ()
    except RuntimeError as error:
        if is_sandboxed() and NO_BACKWARD in str(error):
            return ()
        raise
    floor = start.recognised.floor or 0.0
    learned = any(isinstance(fact, OverfitFacts) and min(fact.losses) <= ENOUGH * floor for fact in facts)
    return tuple(facts) if learned or surely != "note" else ()


def of_tape(loop: Any) -> Look | None:
    """Return what looks at a loop around a Keras optimizer, the only one of its script."""
    if loop.seen is None:
        return None

    def look(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        from diagnostics.collectors.keras.examine.first_batches.tape_facts import tape_facts
        from diagnostics.collectors.keras.state import generators_of, global_states_kept

        with global_states_kept(*(g for part in loop.seen.parts for g in generators_of(part))):
            return tape_facts(loop.seen, deadline, lambda: symptom() is not None)

    return look


def of_keras(
    model: Any, pipeline: Any, reported: Callable[[Any, float], Any] = lambda _model, _deadline: None
) -> Look | None:
    """Return what looks at a Keras model, from what examined a batch of it; None on other backends.

    Args:
        model: that is trained.
        pipeline: that examined a batch.
        reported: returns, of the model and until a deadline, what `evaluate` reported and the predictions for it.
    """
    if sys.modules["keras"].backend.backend() != "tensorflow":
        return None
    from diagnostics.collectors.keras.dependence.kept_batch import keep_batch, size_of
    from diagnostics.collectors.keras.dependence.untracked_variables import values_of_untracked

    batch = getattr(pipeline, "batch_parts", None)
    kept = None if batch is None else keep_batch(*batch)
    if kept is None:
        return None
    # What the look needs of the pipeline, and not itself: it holds the model, and a script may free each of many.
    outputs, rows_at_once = getattr(pipeline, "outputs_kept", None), getattr(pipeline, "rows_at_once", None)
    held = weakref.ref(model) if size_of(pipeline.model) > LARGEST_HELD else lambda: model
    before = values_of_untracked(model)

    def look(deadline: float, symptom: Symptom) -> tuple[Any, ...] | str:
        from diagnostics.collectors.keras.dependence.kept_batch import objection
        from diagnostics.collectors.keras.dependence.measure import measure
        from diagnostics.collectors.keras.dependence.perfect_answers import answer_losses
        from diagnostics.collectors.keras.dependence.single_rows import blind_to_rows
        from diagnostics.collectors.keras.dependence.subject import KerasSubject
        from diagnostics.collectors.keras.dependence.turned_arguments import turned_arguments
        from diagnostics.collectors.keras.dependence.untracked_variables import untracked_variables
        from diagnostics.collectors.keras.dependence.vanishing_layers import vanishing_layers
        from diagnostics.collectors.keras.examine.final_answers import final_answers
        from diagnostics.collectors.keras.examine.forgotten_layers import forgotten_layers
        from diagnostics.collectors.keras.examine.unreached_modes import never_in_training, still_statistics
        from diagnostics.collectors.keras.model import describe_model
        from diagnostics.collectors.keras.optimizer import optimizer_facts
        from diagnostics.collectors.keras.state import generators_of, global_states_kept

        model = held()
        if model is None:
            return "the script has freed its model"
        if (why := objection(model)) is not None:
            return why
        with global_states_kept(*generators_of(model)):
            subject = KerasSubject(model, kept, deadline)
            facts = measure(subject)
            answers = None if outputs is None else final_answers(model, outputs, deadline)
            modes = never_in_training(model, model.optimizer)
            still = still_statistics(model, model.optimizer)
            made = vanishing_layers(subject) or untracked_variables(subject, before)
            held_by = None if made is None else optimizer_facts(model)
            blind = blind_to_rows(subject, rows_at_once)
            unused = forgotten_layers(model)
            turned = turned_arguments(subject)
            seen = (
                *(answers, answer_losses(subject), turned, blind, modes, still, made, held_by, unused),
                reported(model, deadline),
            )
            further = [fact for fact in seen if fact is not None]
        return replace(facts, trained=True), describe_model(model), *further

    return look
