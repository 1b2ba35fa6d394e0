"""Plans the experiments: which, in which order, with how many steps, within which time. No framework."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from diagnostics.facts.experiments import NO_BETTER, ExperimentRun, Experiments

from .data import AlignedTargets, ShuffledRows, StandardisedInputs, StandardisedTargets
from .experiment import Experiment, Setup
from .model import (
    DefaultInitialisation,
    Float32,
    TrainingMode,
    Unfrozen,
    WithoutBatchNorm,
    WithoutDropout,
    WithoutLastActivation,
)
from .steps import Rate, WithAdam, WithoutClipping, WithoutDecay, WithoutSchedule

STEPS, FEWEST_STEPS = 150, 30  # of a copy
REPEATED = 3  # copies without a change
RUNS = 12  # that the time is shared out among, at first
PACED = 4  # steps that show how long one takes
STILL = 0.02  # of its first loss: a copy that changes it by less hardly moves

# What is wrong where it can be done at all comes first; then what is most often the cause; then what rarely is.
FIRST = (AlignedTargets(), TrainingMode(), Unfrozen(), StandardisedInputs(), StandardisedTargets())
FIRST = (*FIRST, WithoutLastActivation(), Float32())
UP, DOWN = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6), (0.1, 0.01, 1e-3, 1e-4)
LAST = (DefaultInitialisation(), ShuffledRows(), WithoutClipping(), WithoutSchedule(), WithoutDecay())
LAST = (*LAST, WithoutBatchNorm(), WithoutDropout())


def run_experiments(make: Callable[[], Setup], deadline: float, steps: int = STEPS) -> Experiments | str:
    """Run copies without and with changes until the time is over.

    Args:
        make: makes what a run is made of, each time the same.
        deadline: of `time.monotonic`; no run is begun after it, and one that has begun is dropped.
        steps: of a copy, at most; fewer if the time is short.

    Returns:
        What was measured, or why nothing was.
    """
    constant = make().constant()
    if not math.isfinite(constant) or constant <= 0:
        return "the loss of the best constant prediction is not known"
    make().run(1)  # the first step of a process may take long
    begun = time.monotonic()
    make().run(PACED)
    pace = (time.monotonic() - begun) / PACED
    steps = min(steps, int((deadline - time.monotonic()) / (RUNS * max(pace, 1e-6))))
    if steps < FEWEST_STEPS:
        return f"a step of a copy takes {pace:.2g} s, too long for the time that was left"
    return _Plan(make, deadline, steps, constant).run()


class _Plan:
    def __init__(self, make: Callable[[], Setup], deadline: float, steps: int, constant: float) -> None:
        self._make, self._deadline, self._steps, self._constant = make, deadline, steps, constant
        self._runs: list[ExperimentRun] = []
        self._left_out: dict[str, str] = {}
        self._unchanged: list[ExperimentRun] = []

    def run(self) -> Experiments | str:
        for repetition in range(REPEATED):
            one = self._trained(self._make(), ExperimentRun(), repetition)
            if one is None:
                return "there was no time for it"
            if not math.isfinite(one.reached):
                return "the loss of an unchanged copy is not finite"
            if one.reached < NO_BETTER * self._constant:
                return (
                    f"an unchanged copy does learn: its loss reaches {one.reached:.4g} in {self._steps} steps, "
                    f"where a constant prediction would score {self._constant:.4g}"
                )
            self._unchanged.append(one)
        for experiment in self._in_order():
            self._try(experiment)
        self._confirm()
        return self._facts()

    def _in_order(self) -> Iterator[Experiment]:
        yield from FIRST
        yield from self._rates()
        yield WithAdam()
        yield from LAST

    def _rates(self) -> Iterator[Experiment]:
        """Try a rate on each side, and go on where the unchanged copy needs it, until one helps."""
        losses = self._unchanged[0].losses
        up = max(losses) - min(losses) < STILL * abs(losses[0])
        yield Rate(UP[0])
        yield Rate(DOWN[0])
        for factor in (UP if up else DOWN)[1:]:
            if any(cure.rate is not None for cure in self._facts().cures):
                return
            yield Rate(factor)

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
        by_name = {experiment.name: experiment for experiment in (*FIRST, WithAdam(), *LAST)}
        by_name |= {rate.name: rate for rate in map(Rate, (*UP, *DOWN))}
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
        )
