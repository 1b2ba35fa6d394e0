"""Plans the overfit trial: which learning rates, which batches, and what the outcome shows. No framework."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.trials import OverfitFacts, TrialFacts

from .loss_match import entropy_floor
from .overfit_run import Plan, Run
from .pipeline import OVERFIT_SECONDS, CannotJudge

STEPS = 30  # a run; a healthy classifier passes the floor in 5 to 20
STEPS_WITHOUT_FLOOR = 10  # only to move the weights, where no loss can be called low enough
ENOUGH = 0.5  # of the floor: then the copy tells its examples apart, and more steps would prove no more

MOVES = (
    1e-4  # |update| / |weight| of a step; a tenth of the 0.001 of the rule of thumb, see learning-rate-too-high
)

SETTLED = 0.8  # of the floor: no rule would complain of such a batch, so nothing more is tried
LAST_MEANT = 20  # steps of a training at its end, and at its beginning, whose mean loss is compared
LAST_STEPS = 150  # once, at the best of our rates, before anything is said: the model may only be slow

# A few sigmoid units take hundreds of steps at our rates to leave the plateau that they begin on: 200 for XOR with
# 3 hidden units, 1,300 for the parity of 5 bits with 16. At 0.1 these take 36 and 176.
# Wider layers leave it sooner.
SMALL = 500  # trainable scalars
SMALL_RATE, SMALL_STEPS = 0.1, 500

# Tried with AdamW where the user's own settings do not get there: its usual rate first; a wide transformer from
# scratch needs a smaller one, a large target scale a larger one.
OUR_RATES = (1e-3, 1e-4, 1e-2)
RESCALED_RATES = (1e-2, 1e-3)
SMALLER = (0.1, 0.01)  # times the user's rate, where its run goes nowhere at full speed
LARGER = (10.0, 1e2, 1e3, 1e4, 1e6)  # times the user's rate, where its run hardly moves
HARDLY_MOVES = 0.02  # of its first loss: less than this was gained in a whole run

# A wide network whose steps are too large may still learn one small batch by heart, and fail at the second. Steps
# thirty times the 0.001 of the rule of thumb (see learning-rate-too-high) are tried on a few batches in turn.
LARGE_TRIAL_UPDATE = 0.03
POOL_BATCHES, POOL_STEPS = 8, 60  # of 8 in turn, the wide ones that we tried fail; of 4, some learn

# An overfit takes 5 to 30 steps on copies. Before a long training they are no cost, and an answer in time; of a
# short one they may be a tenth. A copy of the weights is kept until its end.
LONG = 2000  # steps
LARGEST_PUT_OFF = 64 * 2**20  # bytes of weights
AWAITS_END = "it waits for the end of the training, which may show that the model learns"


@dataclass(frozen=True)
class Pool:
    """A few batches to train on in turn.

    Attributes:
        floor: the loss of the best constant prediction to all of their examples.
        batches: how many.
    """

    floor: float
    batches: int


def overfit(
    run: Callable[[Plan], Run],
    *,
    floor: float | None,
    distinct_inputs: int,
    their_rate: float | None,
    warms_up: bool | None,
    pool: Callable[[], Pool | None] = lambda: None,
    rescalable: bool = False,
    num_trainable: int | None = None,
    seconds: float = OVERFIT_SECONDS,
) -> Iterator[OverfitFacts | TrialFacts]:
    """Run the trials that a conclusion needs, and no more.

    The user's own optimizer and rate come first. If they pass well below the floor, all is shown in one run. If
    not, the same optimizer is tried at other rates, which is what the rules on learning rates need; and then our
    own, because whether model, loss and labels can come together at all is not a question of the user's rate.

    Args:
        run: trains a fresh copy according to a plan.
        floor: the loss of the best constant prediction on this batch; None or 0 if there is no such thing.
        distinct_inputs: passed on to the facts.
        their_rate: the user's learning rate; None or 0 if it is not known.
        warms_up: passed on to the facts.
        pool: takes further batches for a plan of several; None if there are none, or no floor for them.
        rescalable: whether this is a regression, whose targets may be on a scale that none of our rates suits:
            prices in dollars take an output layer thousands of steps to reach. Then a last run asks whether the
            model can learn them on a scale of 1.
        num_trainable: scalars of the model; None if not known. A small one gets one more run.
        seconds: after which no further run is begun.

    Raises:
        CannotJudge: no run got there in time.
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
        if runs and took > seconds:
            count = sum(len(r.losses) for r in runs)
            raise CannotJudge(
                f"{count} steps on a copy took {took:.0f} s and gave no clear result; no more were tried"
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
        alone = TrialFacts(
            learning_rate=their_rate,
            losses=first.losses,
            update_ratios=first.update_ratios,
            better_rate=their_rate * better if better else None,
            better_losses=runs[-1].losses if better else (),
            warms_up=warms_up,
        )
        suspect = first.lowest <= enough and max(first.update_ratios, default=0.0) >= LARGE_TRIAL_UPDATE
        affordable = POOL_STEPS * first.pace <= seconds
        in_turns = warms_up is False and suspect and affordable
        yield (train_in_turns(run, pool(), their_rate) if in_turns else None) or alone

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
    alike = _alike(runs)  # it explains the failure
    if not settled() and not alike and num_trainable is not None and num_trainable <= SMALL:
        go(SMALL_RATE, theirs=False, steps=SMALL_STEPS)
    best = min(runs, key=lambda r: r.lowest)
    rescaled = best in rescaled_runs
    best = replace(best, symmetric=best.symmetric or alike)
    yield _facts(best, tuple(rates), distinct_inputs, rescaled)


def can_wait(steps: int | None, num_bytes: int) -> bool:
    """Whether an overfit can wait for the end of the training.

    Args:
        steps: of the training; None if not known.
        num_bytes: of the weights.
    """
    return steps is not None and steps < LONG and num_bytes <= LARGEST_PUT_OFF


def has_settled(losses: Sequence[float], floor: float | None) -> bool:
    """Whether a whole training shows what an overfit of one batch would: the model learns.

    Args:
        losses: one a step.
        floor: the loss of the best constant prediction; None if there is none: then the first losses are compared.
    """
    several = max(1, min(LAST_MEANT, len(losses) // 4))
    if len(losses) < 2:
        return False
    begin, end = (sum(part) / several for part in (losses[:several], losses[-several:]))
    return end <= SETTLED * (floor or begin)


class Stopwatch:
    """Measures the pace of a run."""

    def __init__(self) -> None:
        self._ends: list[float] = []

    def step(self) -> None:
        """Record the end of a step."""
        self._ends.append(time.monotonic())

    @property
    def pace(self) -> float:
        """Seconds a step, from the end of the first to the end of the last; 0 if there was but one."""
        return (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1) if len(self._ends) > 1 else 0.0


def larger(at_first: float | None, in_the_end: float | None) -> float | None:
    """Return the largest spread of a copy's predictions over the run; not finite if they end so."""
    if at_first is None or in_the_end is None or not (math.isfinite(at_first) and math.isfinite(in_the_end)):
        return in_the_end
    return max(at_first, in_the_end)


def pool_of(labels: list[Array], first_floor: float, classes: int) -> Pool | None:
    """Return the baseline of a few batches: one batch's floor, and what the labels of all add to it.

    Args:
        labels: class indices (n,) of each batch; the first is the one that `first_floor` is of.
        first_floor: the loss of the best constant prediction there, in nats.
        classes: of the loss.
    """
    if len(labels) < 2:
        return None
    added = entropy_floor(np.concatenate(labels), classes) - entropy_floor(labels[0], classes)
    return Pool(first_floor + added, len(labels))


def train_in_turns(run: Callable[[Plan], Run], pool: Pool | None, their_rate: float) -> TrialFacts | None:
    """Train on several batches; None unless their rate gets nowhere with them and a smaller one does."""
    if pool is None or pool.floor <= 0:
        return None

    def go(factor: float) -> tuple[Plan, Run]:
        plan = Plan(their_rate * factor, True, factor, POOL_STEPS, ENOUGH * pool.floor, batches=pool.batches)
        return plan, run(plan)

    plan, theirs = go(1.0)
    if plan.got_there(theirs.losses):
        return None
    for factor in SMALLER:
        plan, other = go(factor)
        if plan.got_there(other.losses):
            return TrialFacts(
                learning_rate=their_rate,
                losses=theirs.losses,
                update_ratios=theirs.update_ratios,
                better_rate=plan.learning_rate,
                better_losses=other.losses,
                warms_up=False,
                batches=pool.batches,
                constant_baseline_loss=pool.floor,
            )
    return None


def _other_rates(first: Run, floor: float) -> tuple[float, ...]:
    """Choose the next trial after a failed one: slower if it is stuck, faster if it hardly moves."""
    if math.isnan(first.losses[-1]):
        return SMALLER
    gained = first.losses[0] - first.losses[-1]
    if gained < HARDLY_MOVES * first.losses[0] and max(first.losses) < (1 + HARDLY_MOVES) * first.losses[0]:
        stuck_at_floor = first.losses[-1] <= (1 + HARDLY_MOVES) * floor
        return (*SMALLER, *LARGER) if stuck_at_floor else LARGER
    return SMALLER if first.losses[-1] > (1 - HARDLY_MOVES) * floor else ()


def _alike(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the weights whose units a whole run left alike that did move the weights.

    One such run is enough: at a large rate rounding alone may part units that are exact copies of each other.
    """
    moved = (r for r in runs if len(r.losses) >= STEPS and max(r.update_ratios, default=0.0) >= MOVES)
    return next((r.symmetric for r in moved if r.symmetric), ())


def _facts(best: Run, rates: tuple[float, ...], distinct_inputs: int, rescaled: bool = False) -> OverfitFacts:
    return OverfitFacts(best.losses, rates, distinct_inputs, best.output_spread, best.symmetric, rescaled)
