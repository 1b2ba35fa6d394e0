"""Decides which learning rates a copy is trained at on one batch, and what the runs show. Knows no framework."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from diagnostics.facts import OverfitFacts, TrialFacts

from .pipeline import CannotJudge

SECONDS = 120.0  # after which no further run is begun: a large model on a CPU may take that for one
STEPS = 30  # a run; a healthy classifier passes the floor in 5 to 20
STEPS_WITHOUT_FLOOR = 10  # only to move the weights, where no loss can be called low enough
ENOUGH = 0.5  # of the floor: then the copy tells its examples apart, and more steps would prove no more

SETTLED = 0.8  # of the floor: no rule would complain of such a batch, so nothing more is tried
LAST_STEPS = 150  # once, at the best of our rates, before anything is said: a small model may only be slow

# Tried with AdamW where the user's own settings do not get there: its usual rate first; a wide transformer from
# scratch needs a smaller one, a large target scale a larger one.
OUR_RATES = (1e-3, 1e-4, 1e-2)
RESCALED_RATES = (1e-2, 1e-3)
SMALLER = (0.1, 0.01)  # times the user's rate, where its run goes nowhere at full speed
LARGER = (10.0, 1e2, 1e3, 1e4, 1e6)  # times the user's rate, where its run hardly moves
HARDLY_MOVES = 0.02  # of its first loss: less than this was gained in a whole run


@dataclass(frozen=True)
class Run:
    """One training run of a fresh copy on the batch.

    Attributes:
        losses: before each step.
        update_ratios: for each step, the median over weights of |update| / |weight|.
        output_spread: see `OverfitFacts`.
        symmetric: see `OverfitFacts`.
    """

    losses: tuple[float, ...]
    update_ratios: tuple[float, ...] = ()
    output_spread: float | None = None
    symmetric: tuple[str, ...] = ()

    @property
    def lowest(self) -> float:
        """The least loss; NaN counts as the worst."""
        return min((loss for loss in self.losses if loss == loss), default=float("inf"))


@dataclass(frozen=True)
class Plan:
    """What one run is to do.

    Attributes:
        learning_rate: for every parameter group; for the user's optimizer at its own rates, the largest of them.
        theirs: whether the user's optimizer is used (a fresh one with its settings), or AdamW.
        factor: times the user's rates, if `theirs`.
        steps: at most.
        enough: the loss at which to stop; None: never.
        rescaled: whether the targets of a regression are brought to mean 0 and standard deviation 1.
    """

    learning_rate: float
    theirs: bool
    factor: float
    steps: int
    enough: float | None
    rescaled: bool = False


def overfit(
    run: Callable[[Plan], Run],
    *,
    floor: float | None,
    distinct_inputs: int,
    their_rate: float | None,
    warms_up: bool | None,
    rescalable: bool = False,
) -> Iterator[OverfitFacts | TrialFacts]:
    """Run as often as it takes, and no more.

    The user's own optimizer and rate come first. If they pass well below the floor, all is shown in one run. If
    not, the same optimizer is tried at other rates, which is what the rules on learning rates need; and then our
    own, because whether model, loss and labels can come together at all is not a question of the user's rate.

    Args:
        run: trains a fresh copy according to a plan.
        floor: the loss of the best constant answer on this batch; None or 0 if there is no such thing.
        distinct_inputs: passed on to the facts.
        their_rate: the user's learning rate; None or 0 if it is not known.
        warms_up: passed on to the facts.
        rescalable: whether this is a regression, whose targets may be on a scale that none of our rates suits:
            prices in dollars take an output layer thousands of steps to reach. Then a last run asks whether the
            model can learn them on a scale of 1.

    Raises:
        CannotJudge: no run got there in `SECONDS`.
    """
    if not floor:
        rate = OUR_RATES[0]
        only = run(Plan(rate, theirs=False, factor=1.0, steps=STEPS_WITHOUT_FLOOR, enough=None))
        yield _facts(only, (rate,), distinct_inputs)
        return

    enough = ENOUGH * floor
    started = time.monotonic()
    runs: list[Run] = []
    rates: list[float] = []
    rescaled_runs: list[Run] = []

    def go(rate: float, theirs: bool, factor: float = 1.0, rescaled: bool = False, steps: int = STEPS) -> Run:
        took = time.monotonic() - started
        if runs and took > SECONDS:
            count = sum(len(r.losses) for r in runs)
            raise CannotJudge(
                f"{count} steps on a copy took {took:.0f} s and did not settle it; no more were tried"
            )
        runs.append(run(Plan(rate, theirs, factor, steps, enough, rescaled)))
        rates.append(rate)
        return runs[-1]

    if their_rate:
        first = go(their_rate, theirs=True)
        better = None
        if first.lowest > enough:
            for factor in _other_rates(first, floor):
                if go(their_rate * factor, theirs=True, factor=factor).lowest <= enough:
                    better = factor
                    break
        yield TrialFacts(
            learning_rate=their_rate,
            losses=first.losses,
            update_ratios=first.update_ratios,
            better_rate=their_rate * better if better else None,
            better_losses=runs[-1].losses if better else (),
            warms_up=warms_up,
        )

    def settled() -> bool:
        return min((r.lowest for r in runs), default=math.inf) <= SETTLED * floor

    ours: list[tuple[float, float]] = []
    for rate in OUR_RATES:
        if not settled():
            ours.append((go(rate, theirs=False).lowest, rate))
    for rate in RESCALED_RATES if rescalable else ():
        if not settled():
            rescaled_runs.append(go(rate, theirs=False, rescaled=True))
    if not settled():
        go(min(ours)[1], theirs=False, steps=LAST_STEPS)
    best = min(runs, key=lambda r: r.lowest)
    yield _facts(best, tuple(rates), distinct_inputs, best in rescaled_runs)


def _other_rates(first: Run, floor: float) -> tuple[float, ...]:
    """Choose what to try after a run that did not get there: slower if it is stuck, faster if it hardly moves."""
    if math.isnan(first.losses[-1]):
        return SMALLER
    gained = first.losses[0] - first.losses[-1]
    if gained < HARDLY_MOVES * first.losses[0] and max(first.losses) < (1 + HARDLY_MOVES) * first.losses[0]:
        stuck_at_floor = first.losses[-1] <= (1 + HARDLY_MOVES) * floor
        return (*SMALLER, *LARGER) if stuck_at_floor else LARGER
    return SMALLER if first.losses[-1] > (1 - HARDLY_MOVES) * floor else ()


def _facts(best: Run, rates: tuple[float, ...], distinct_inputs: int, rescaled: bool = False) -> OverfitFacts:
    return OverfitFacts(best.losses, rates, distinct_inputs, best.output_spread, best.symmetric, rescaled)
