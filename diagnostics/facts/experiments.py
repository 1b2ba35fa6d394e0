"""Facts about experiments on copies of a run that did not learn. Plain numbers, no framework."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from diagnostics.facts.frozen import frozen

NO_BETTER = 0.9  # of the constant prediction's loss: a copy without a change that is below does learn
BETTER = 0.85  # of the same: above, a change may have helped by chance
REMAINS, HALVES = 0.75, 0.5  # of the run's final loss: without a change, and with one that helps
NOISES = 3.0  # times the spread of the unchanged copies
MAKES_UP = 4  # `breadth` of a rate so much higher that something must shrink the steps, such as clipping
STOOD_AT = "stood_at"  # in the evidence of `not-learning`: the loss of a run that learned a part only
MOST_OF_IT = 0.5  # of the largest gain: a narrower change that gains this is preferred


@frozen
class ExperimentRun:
    """One copy, trained from the first weights of the run on its batches.

    Attributes:
        name: of the experiment; empty without a change.
        phrase: what was changed: ``with standardised inputs``.
        fix: what to change in the script.
        losses: before each step.
        reached: the loss after the last step, of rows that no copy was trained on.
        rule: the rule that names this cause; empty for none.
        breadth: for how many reasons the change may help: 0 for one thing that is put right, 1 for another
            learning rate, 2 for another optimizer, `MAKES_UP` for a rate that may only make up for another fault.
        rate: the learning rate, if that is what was changed.
    """

    name: str = ""
    phrase: str = ""
    fix: str = ""
    losses: tuple[float, ...] = ()
    reached: float = math.nan
    rule: str = ""
    breadth: int = 0
    rate: float | None = None


@frozen
class Experiments:
    """Copies of a run that did not learn, each with one thing changed.

    All begin with the same weights, and make the same number of steps on the same batches.

    Attributes:
        unchanged: without any change, each with the batches in another order; at least two.
        runs: with one change each.
        constant: the loss of the best constant prediction for the rows held out.
        rows: how many rows were held out.
        trained_rows: how many others there are.
        left_out: by name, why an experiment could not be run.
        level: the final loss of a run that learned something but too little; infinite if it learned nothing.
    """

    described: ClassVar[str] = "experiments on copies"

    unchanged: tuple[ExperimentRun, ...]
    runs: tuple[ExperimentRun, ...]
    constant: float
    rows: int
    trained_rows: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    level: float = math.inf

    @property
    def steps(self) -> int:
        """How many steps each copy made."""
        return len(self.unchanged[0].losses)

    @property
    def tried(self) -> frozenset[str]:
        """The names of the changes that were made."""
        return frozenset(run.name for run in self.runs)

    @property
    def without(self) -> float:
        """The least loss that an unchanged copy reached."""
        return min(run.reached for run in self.unchanged)

    @property
    def noise(self) -> float:
        """How far the losses of the unchanged copies are apart, above the constant prediction's not counted."""
        reached = [min(run.reached, self.constant) for run in self.unchanged]
        return max(reached) - min(reached)

    @property
    def cures(self) -> tuple[ExperimentRun, ...]:
        """The changes with which a copy learns what it does not learn without, the best first.

        None if an unchanged copy learns, or is not finite. A narrower change comes before one that gains more,
        unless it gains less than half as much; a rate that may only make up for a fault comes after its cure. See
        `breadth`.
        """
        if not all(math.isfinite(run.reached) for run in self.unchanged):
            return ()
        if self.without < learns_below(self.constant, self.level):
            return ()
        without = min(self.without, self.constant)
        better = BETTER * self.constant if math.isinf(self.level) else HALVES * min(self.level, without)
        limit = min(better, without - NOISES * self.noise)
        found = sorted((run for run in self.runs if run.reached <= limit), key=lambda run: run.reached)
        if not found:
            return ()
        enough = without - MOST_OF_IT * (without - found[0].reached)
        narrow = any(not run.breadth for run in found)

        def rank(run: ExperimentRun) -> tuple[int, float]:
            breadth = 1 if run.breadth == MAKES_UP and not narrow else run.breadth
            return (breadth if run.reached <= enough else max(breadth, 3)), run.reached

        return tuple(sorted(found, key=rank))


def learns_below(constant: float, level: float) -> float:
    """Return the loss below which a copy without a change learns what the run did not; see `Experiments`."""
    return NO_BETTER * constant if math.isinf(level) else REMAINS * level
