"""Plans the experiments: which, in which order, with how many steps, within which time. No framework."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from diagnostics.facts.experiments import ExperimentRun, Experiments, learns_below

from .changes import (
    ALIGNED_TARGETS,
    DEFAULT_INITIALISATION,
    FLOAT32,
    SHUFFLED_ROWS,
    STANDARDISED_INPUTS,
    STANDARDISED_TARGETS,
    TRAINING_MODE,
    UNFROZEN,
    WITH_ADAM,
    WITHOUT_CLIPPING,
    WITHOUT_DECAY,
    WITHOUT_DROPOUT,
    WITHOUT_LAST_ACTIVATION,
    WITHOUT_NORMALISATION,
    WITHOUT_SCHEDULE,
    at_rate,
)
from .experiment import Experiment, Setup, together

LEAST_S = 0.2  # of the time that must be left: to prepare takes a part of it
TOO_SHORT = "there was too little time (--second-look 20 allows 20 seconds)"
STEPS, FEWEST_STEPS = 150, 30  # of a copy
REPEATED = 3  # copies without a change
RATES = 4  # that are tried, on average
PACED = 4  # steps that show how long one takes
STILL = 0.02  # of its first loss: a copy that changes it by less in all its steps hardly moves
WORSE = 2.0  # times that loss: a rate with which a copy ends there is too high, and so are those above it

# What is wrong where it can be done at all comes first; then what is most often the cause; then what rarely is.
FIRST = (
    ALIGNED_TARGETS,
    TRAINING_MODE,
    UNFROZEN,
    STANDARDISED_INPUTS,
    STANDARDISED_TARGETS,
    WITHOUT_LAST_ACTIVATION,
    FLOAT32,
)
UP, DOWN = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6), (0.1, 0.01, 1e-3, 1e-4)
LAST = (
    WITH_ADAM,
    DEFAULT_INITIALISATION,
    SHUFFLED_ROWS,
    WITHOUT_CLIPPING,
    WITHOUT_SCHEDULE,
    WITHOUT_DECAY,
    WITHOUT_NORMALISATION,
    WITHOUT_DROPOUT,
)
TOGETHER = (together(STANDARDISED_TARGETS, WITH_ADAM), together(STANDARDISED_INPUTS, WITH_ADAM))


def run_experiments(
    make: Callable[[], Setup], deadline: float, steps: int = STEPS, level: float = math.inf
) -> Experiments | str:
    """Run copies without and with changes until the time is over.

    Args:
        make: makes what a run is made of, each time the same.
        deadline: of `time.monotonic`; no run is begun after it, and one that has begun is dropped.
        steps: of a copy, at most; fewer if the time is short.
        level: see `Experiments`.

    Returns:
        What was measured, or why nothing was.
    """
    if deadline - time.monotonic() < LEAST_S:
        return TOO_SHORT
    try:
        return _measured(make, deadline, steps, level)
    except Exception as error:  # a model may not take other rows than the script's batches
        return f"an unchanged copy raised {type(error).__name__}"


def _measured(make: Callable[[], Setup], deadline: float, steps: int, level: float) -> Experiments | str:
    constant = make().constant()
    if not math.isfinite(constant) or constant <= 0:
        return "the loss of the best constant prediction is not known"
    make().run(1)  # the first step of a process may take long
    fixed = _seconds(lambda: make().run(1))
    pace = max(1e-6, (_seconds(lambda: make().run(1 + PACED)) - fixed) / PACED)
    runs = REPEATED + RATES + sum(each.objection(make()) is None for each in (*FIRST, *LAST))
    steps = min(steps, int(((deadline - time.monotonic()) / runs - fixed) / pace))
    if steps < FEWEST_STEPS:
        return TOO_SHORT
    return _Plan(make, deadline, steps, constant, level).run()


def _seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


class _Plan:
    def __init__(
        self, make: Callable[[], Setup], deadline: float, steps: int, constant: float, level: float
    ) -> None:
        self._make, self._deadline, self._steps, self._constant = make, deadline, steps, constant
        self._level = level
        self._runs: list[ExperimentRun] = []
        self._left_out: dict[str, str] = {}
        self._unchanged: list[ExperimentRun] = []

    def run(self) -> Experiments | str:
        for repetition in range(REPEATED):
            one = self._trained(self._make(), ExperimentRun(), repetition)
            if one is None:
                return TOO_SHORT
            if not math.isfinite(one.reached):
                return "the loss of an unchanged copy is not finite"
            if one.reached < learns_below(self._constant, self._level):
                return (
                    f"an unchanged copy does learn: its loss reaches {one.reached:.4g} in {self._steps} steps, "
                    f"where a constant prediction would score {self._constant:.4g}"
                )
            self._unchanged.append(one)
        for experiment in FIRST:
            self._try(experiment)
        self._try_rates()
        for experiment in LAST:
            self._try(experiment)
        if not self._facts().cures:
            for both in TOGETHER:
                self._try(both)
        self._confirm()
        return self._facts()

    def _try_rates(self) -> None:
        """Try a rate on each side; go on where the unchanged copy needs it, until one helps or makes it worse."""
        began = self._make().run(0).held_out
        up = abs(self._unchanged[0].reached - began) < STILL * abs(began)
        for factor in (UP[0], DOWN[0], *(UP if up else DOWN)[1:]):
            self._try(at_rate(factor))
            latest = self._runs[-1] if self._runs else None
            helps = any(cure.rate is not None for cure in self._facts().cures)
            worse = latest is not None and latest.rate is not None and not latest.reached <= WORSE * began
            if helps or (worse and up and factor > 1):
                return

    def _try(self, experiment: Experiment) -> None:
        setup = self._make()
        try:
            why = experiment.objection(setup)
            if why is None and time.monotonic() > self._deadline:
                why = "there was no time left"
            if why is not None:
                self._left_out[experiment.name] = why
                return
            described = experiment.described(setup)
            experiment.change(setup)
            one = self._trained(setup, described)
        except Exception as error:  # a copy that was changed may fail in any way
            self._left_out[experiment.name] = f"the copy raised {type(error).__name__}"
            return
        if one is None:
            self._left_out[experiment.name] = "there was no time left"
        else:
            self._runs.append(one)

    def _trained(self, setup: Setup, described: ExperimentRun, repetition: int = 0) -> ExperimentRun | None:
        """Train a copy; None if the time was over before its last step."""
        start = repetition * len(setup.rows.batches) // REPEATED
        reached = setup.run(self._steps, start, stop=lambda: time.monotonic() > self._deadline)
        if len(reached.losses) < self._steps and math.isfinite(reached.held_out):
            return None
        return replace(described, losses=reached.losses, reached=reached.held_out)

    def _confirm(self) -> None:
        """Repeat the best change with the batches in another order; what does not hold counts as not helping."""
        by_name = {each.name: each for each in (*FIRST, *LAST, *TOGETHER)}
        by_name |= {rate.name: rate for rate in map(at_rate, (*UP, *DOWN))}
        while cures := self._facts().cures:
            setup, best = self._make(), cures[0]
            by_name[best.name].change(setup)
            again = self._trained(setup, best, repetition=1)
            if again is None:
                return
            place = self._runs.index(best)
            self._runs[place] = replace(best, reached=max(best.reached, again.reached))
            if self._facts().cures[:1] == (self._runs[place],):
                return

    def _facts(self) -> Experiments:
        rows = self._make().rows
        return Experiments(
            tuple(self._unchanged),
            tuple(self._runs),
            self._constant,
            len(rows.held_out),
            len(rows.trained),
            dict(self._left_out),
            self._level,
        )
