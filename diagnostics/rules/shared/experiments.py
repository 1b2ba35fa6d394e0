"""Describes the results of experiments on copies."""

from __future__ import annotations

import math
from typing import Any

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule
from diagnostics.facts.experiments import BETTER, ExperimentRun, Experiments
from diagnostics.text.join import capitalized, count_of, listed

from .lr_trial import number

CURVES = "loss_curves"  # the evidence that the page draws
DIGITS = 5
LOWER_RATE = "learning rate /"  # the experiments with one
SCHEDULED = "no schedule"  # the experiment, which only a run with a schedule has
OTHERS = 3  # further changes that are named


def cure_named(experiments: Experiments, rule: str) -> ExperimentRun:
    """Return the best change, if a rule names the cause that it points to.

    Raises:
        NotApplicable: another change is the best, or none helps; or a schedule changes the rate; or the run
            learned a part, which a better rate always makes larger.
    """
    if math.isfinite(experiments.level):
        raise NotApplicable
    best = next(iter(experiments.cures), None)
    if best is None or best.rule != rule or (best.rate is not None and SCHEDULED in experiments.tried):
        raise NotApplicable
    return best


def better_rate(rule: Rule, experiments: Experiments) -> Finding:
    """Return the finding of a rule that names another learning rate as the cure.

    Raises:
        NotApplicable: see `cure_named`.
    """
    cure = cure_named(experiments, rule.name)
    return rule.found(
        f"The model did not learn. {outcome(experiments)}",
        fix=fixes(experiments),
        evidence={"better_rate": cure.rate, **evidence(experiments)},
    )


def outcome(experiments: Experiments) -> str:
    """Say what the best change does, and which others help."""
    best, *others = experiments.cures
    unchanged = experiments.without
    also = [f"{other.phrase} ({other.reached:.4g})" for other in others]
    return (
        f"{capitalized(best.phrase)}, training for {count_of(experiments.steps, 'step')} reaches a loss of "
        f"{best.reached:.4g} instead of {unchanged:.4g}; a constant prediction has a loss of "
        f"{experiments.constant:.4g}. These losses were measured on {experiments.rows} held-out rows, for "
        "copies of the model retrained from its initial weights with one change at a time."
    ) + (f" Other changes that help: {listed(also, most=OTHERS)}." if also else "")


def in_vain(experiments: Experiments, part: bool = False) -> str:
    """Say that no change helps; `part`: a run that learned something."""
    return (
        f"Copies of the model, retrained for {experiments.steps} steps with one change each "
        f"({listed([run.phrase for run in experiments.runs], most=OTHERS)}), did not "
        f"{'learn much more' if part else 'learn either'}."
    )


def fixes(experiments: Experiments) -> tuple[str, ...]:
    """Return the fix of each change that helps, the best first."""
    return tuple(dict.fromkeys(cure.fix for cure in experiments.cures[: 1 + OTHERS]))


def evidence(experiments: Experiments) -> dict[str, Any]:
    """Return all that was tried, by name."""
    best = next(iter(experiments.cures), None)
    return {
        "experiments": {run.name: number(run.reached) for run in experiments.runs},
        "experiments_not_run": dict(experiments.left_out),
        "experiment_steps": experiments.steps,
        "unchanged_copies": [number(run.reached) for run in experiments.unchanged],
        "copies_constant_loss": experiments.constant,
        "best_experiment": best.name if best is not None else None,
        "one_thing": best is not None and not best.breadth,
        CURVES: {}
        if best is None
        else {
            "unchanged": rounded(experiments.unchanged[0].losses),
            best.phrase: rounded(best.losses),
        },
    }


def lower_rate_cures(finding: Finding) -> bool:
    """Return whether among the experiments that a finding reports one with a lower learning rate helps."""
    tried = finding.evidence.get("experiments", {})
    reached = [loss for name, loss in tried.items() if name.startswith(LOWER_RATE) and not isinstance(loss, str)]
    return bool(reached) and min(reached) <= BETTER * finding.evidence["copies_constant_loss"]


def rounded(losses: tuple[float, ...]) -> list[float | str]:
    """Return losses as evidence."""
    return [number(float(f"{loss:.{DIGITS}g}")) for loss in losses]
