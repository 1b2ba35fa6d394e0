"""What two runs of a script are compared by: environment, settings, seeds, weights, rows, and the course."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from diagnostics.collectors.system.environment import determinism, environment
from diagnostics.facts.array import Array
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.training import StartFacts, TrainingHistory

FIRST: Final = 32
"""Steps at the beginning of which each is recorded."""

BITS: Final = 3
"""Of a later step's number: it is recorded if all but its highest bits are 0, which runs of any length share."""

NOTHING: Final = StartFacts({}, {}, {}, {}, {})


@dataclass(frozen=True)
class TrainingFingerprint:
    """What tells one training apart from another.

    Attributes:
        environment: versions, devices, threads and flags, by name.
        start: settings, seeds, weights and rows.
        settings: more of them, which only the run shows: batch size, clipping.
        steps: integers (k,), the recorded ones.
        losses: float64 (k,), NaN where unknown, too.
        rates: float64 (k,), the largest of the parameter groups.
        batches: uint64 (k,), equal for equal batches; 0 where unknown.
        total_steps: of the optimizer.
        evaluation_loss: the last one; None if no evaluation was seen.
    """

    environment: Mapping[str, str]
    start: StartFacts
    settings: Mapping[str, Any]
    steps: Array
    losses: Array
    rates: Array
    batches: Array
    total_steps: int
    evaluation_loss: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, in the layout of the JSON report."""
        return {
            "settings": {**self.start.settings, **self.settings},
            "seeds": dict(self.start.seeds),
            "states": dict(self.start.states),
            "weights": dict(self.start.weights),
            "rows": {str(step): " ".join(rows) for step, rows in self.start.rows.items()},
            "steps": self.steps.tolist(),
            "losses": self.losses.tolist(),
            "learning_rates": self.rates.tolist(),
            "batches": [f"{number:016x}" if number else None for number in self.batches.tolist()],
            "total_steps": self.total_steps,
            "last_loss": self.losses[-1].item() if len(self.losses) else None,
            "evaluation_loss": self.evaluation_loss,
        }


def fingerprint_of(history: TrainingHistory, facts: Iterable[Any]) -> TrainingFingerprint:
    """Return what tells a training apart from another.

    Args:
        history: of the training.
        facts: that were measured of it.
    """
    known = {type(fact): fact for fact in facts}
    taken, places = history.steps, _recorded(history.steps.steps)
    losses = {} if history.losses is None else dict(zip(history.losses.steps, history.losses.values, strict=True))
    settings: dict[str, Any] = {}
    if len(taken.batch_sizes) and taken.batch_sizes[0]:
        settings["batch size"] = int(taken.batch_sizes[0])
    if len(taken.passes) > 1:
        settings["passes of a step"] = int(taken.passes[1])
    if (clip := known.get(ClipFacts)) is not None:
        settings["clipping"] = f"{clip.function}, {clip.limit:g}"
    rates = taken.learning_rates[places]
    known_rates = np.where(np.isfinite(rates), rates, -math.inf).max(axis=1, initial=-math.inf)
    evaluations = np.zeros(0) if history.evaluations is None else history.evaluations.losses
    steps = taken.steps[places]
    return TrainingFingerprint(
        environment={**dict(environment()), **dict(determinism())},
        start=known.get(StartFacts, NOTHING),
        settings=settings,
        steps=steps,
        losses=np.array([losses.get(step, math.nan) for step in steps]),
        rates=np.where(np.isfinite(known_rates), known_rates, math.nan),
        batches=taken.batch_fingerprints[places],
        total_steps=taken.total_steps,
        evaluation_loss=float(evaluations[-1]) if len(evaluations) else None,
    )


def _recorded(steps: Array) -> list[int]:
    """Return the places of the steps to record, among those that were kept, and of the last one."""
    last = len(steps) - 1
    return [place for place, step in enumerate(steps.tolist()) if place == last or _is_recorded(step)]


def _is_recorded(step: int) -> bool:
    return step < FIRST or step & ((1 << (step.bit_length() - BITS - 1)) - 1) == 0
