"""Builds the report of a watched run; the same for a loop and for callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from diagnostics.facts.batch_view import BatchView
from diagnostics.facts.layers import RangeFacts
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import WATCHED, GradientHistory, LossHistory, StepHistory, TrainingHistory
from diagnostics.report.build import evaluated, new_evaluator
from diagnostics.report.contents import StageResult
from diagnostics.report.fingerprint import fingerprint_of
from diagnostics.report.report import Report
from diagnostics.text.join import count_of

NO_LOSS = "the loop passed none: call watch.step(loss)"
ONLY_IF_NOT = ("learning rate", "trace", "fixed batch", "histograms")  # parts that are named if not watched
CONSTANT = 0.01  # relative difference of two learning rates that are called the same
NO_PASS = "none was seen: pass the model that the loop calls"


class Watcher(Protocol):
    """Interface that a report needs from a watcher of any framework.

    Attributes:
        faults: by part, errors in the watcher itself.
        uncovered: by part, why it could not be watched.
        forwards: number of forward passes with gradients.
    """

    faults: dict[str, str]
    uncovered: dict[str, str]
    forwards: int

    @property
    def origin(self) -> OriginFacts | None:
        """Where the first NaN or inf originated; None if there is none."""

    def read(self) -> None:
        """Read all pending values from the device."""

    def history(self) -> TrainingHistory:
        """Return the run so far."""

    def ranges(self) -> RangeFacts | None:
        """Return the activation ranges; None if they are not known."""


def watch_report(probe: Watcher, name: str, facts: tuple[Any, ...] = ()) -> Report:
    """Evaluate the rules on the run so far, without grouping the findings.

    Args:
        probe: the watcher, which is read first.
        name: the name of the model, for the title.
        facts: further facts about the model, the optimizer and the data.
    """
    probe.read()
    history, ranges = probe.history(), probe.ranges()
    evaluator = new_evaluator()
    batches = tuple(fact for fact in facts if isinstance(fact, BatchView))
    facts = tuple(fact for fact in facts if not isinstance(fact, BatchView))
    seen = (*facts, *history.parts(), probe.origin, ranges)
    findings = evaluator.add(*(fact for fact in seen if fact is not None))
    findings += evaluator.close_phase()
    count = history.steps.total_steps
    return evaluated(
        f"watched {count_of(count, 'step')} of {name}",
        evaluator,
        findings,
        (*WATCHED, *(type(fact) for fact in facts)),
        other_faults=filter(None, probe.faults.values()),
        stages=tuple(_parts(history, probe)),
        history=history,
        origin=probe.origin,
        ranges=ranges,
        batches=batches,
        facts=tuple(fact for fact in seen if fact is not None),
        fingerprints=(fingerprint_of(history, facts),),
    )


def _parts(history: TrainingHistory, probe: Watcher) -> list[StageResult]:
    """Return, part by part, what was watched, or why it was not."""
    uncovered: Mapping[str, str] = probe.uncovered
    remarks: Mapping[str, str] = getattr(probe, "remarks", {})  # by part, how exact what was seen is

    def part(name: str, seen: str, otherwise: str) -> StageResult:
        why = (probe.faults.get(name) and "an error in diagnostics itself; see below") or uncovered.get(name)
        if seen and not why:
            return StageResult(name, "passed", "; ".join(filter(None, (seen, remarks.get(name)))))
        return StageResult(name, "not judged", why or otherwise)

    size = int(history.steps.batch_sizes.max(initial=0))
    passes = f"{probe.forwards:,}" + (f", batches of up to {size:,}" if size else "") if probe.forwards else ""
    return [
        part("forward passes", passes, NO_PASS),
        part("loss", _range(history.losses), NO_LOSS),
        part("gradients", _norms(history.gradients), "no parameter had a gradient when an optimizer stepped"),
        part("updates", _updates(history), "no step was sampled"),
        part("weights", "kept, to replay a failed step", ""),
        *(part(name, "", "") for name in ONLY_IF_NOT if name in uncovered),
    ]


def _range(losses: LossHistory | None) -> str:
    if losses is None:
        return ""
    first, last = (f"{value:.4g}".replace("nan", "NaN") for value in losses.values[[0, -1]])
    return f"{first} in the first step, {last} in the last"


def _norms(gradients: GradientHistory | None) -> str:
    if gradients is None:
        return ""
    norms, count = gradients.norms, len(gradients.layers)
    finite = norms[np.isfinite(norms)]
    seen = f"norm {finite.min():.3g} to {finite.max():.3g}" if finite.size else "never finite"
    then = ", then not finite" if 0 < finite.size < norms.size else ""
    return f"{seen} over {count_of(count, 'layer')}{then}"


def _updates(history: TrainingHistory) -> str:
    if history.updates is None:
        return ""
    finite = history.updates.ratios[np.isfinite(history.updates.ratios)]
    if not finite.size:
        return "no finite update"
    moved = f"a step changes a layer by {np.median(finite):.2g} of its size (median)"
    return "; ".join(filter(None, (moved, _rates(history.steps))))


def _rates(steps: StepHistory) -> str:
    """Return how the largest learning rate of the parameter groups went; empty if it is constant or not known."""
    rates = steps.learning_rates[np.isfinite(steps.learning_rates).all(axis=1)].max(axis=1, initial=0.0)
    if not rates.size or np.ptp(rates) <= CONSTANT * rates.max():
        return ""
    first, last, most = rates[0], rates[-1], rates.max()
    beyond = f", up to {most:.3g} between" if most > (1 + CONSTANT) * max(first, last) else ""
    return f"learning rate {first:.3g} in the first step, {last:.3g} in the last{beyond}"
