"""See `CollapsedSchedule`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import Verdicts
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.frozen import frozen
from diagnostics.facts.pipeline import OptimizerFacts
from diagnostics.facts.training import LossHistory, StepHistory

STEPS = 50  # in a run: a shorter one says little about its schedule
COLLAPSED = 1e-3  # of the highest rate: an update is then mostly rounding and noise
EARLY = 0.5  # of the run: a schedule that decays to nothing gets there only at the end
ABRUPT = 0.05  # of the run, from half of the highest rate to `COLLAPSED`; plateau cuts are further apart
EARLY_IF_SMOOTH = 1 / 3  # of the run, if the rate falls at every step or every epoch
EARLY_IF_IN_BATCHES = 0.6  # of the run, if it falls more often than once an epoch
WITHIN = 0.75  # of an epoch: a shorter tread counts batches, not epochs
TREADS = 3  # in a staircase, before it counts as a steady fall
UNEVEN = 0.1  # of a tread's length, plus one step: the tolerance for treads of equal length
MOVE = "call scheduler.step() once per epoch, outside the loop over the batches"
AFTER_STEP = (
    "call scheduler.step() only where optimizer.step() is called",
    "specify the scheduler's durations in optimizer steps: epochs * len(loader) // accumulate",
)
COMPOUNDS = (
    "compute each rate from the initial rate: initial_rate * factor**epoch, not last_rate * factor**epoch",
    "use a factor closer to 1, such as 0.95 per epoch",
)
UNIT = 0.1  # an optimizer with at least this rate may be meant for a schedule that returns the rates themselves
SQUARED = 0.01  # relative tolerance for a rate being the square of another
ABOVE = 1.01  # times the first rate: a schedule that rises above it is a warm-up
LEARNED = 0.1  # of the first loss: a run that got there earlier needed no more steps
COUNTS = (
    "Either the scheduler is stepped once per batch instead of once per epoch, or its durations are given in "
    "epochs although the scheduler counts batches."
)


@frozen
class _Fall:
    """How the rate fell to almost nothing.

    Attributes:
        highest: value of the rate.
        last: value of it.
        halved: last step with at least half of the highest.
        collapsed: first step of those at almost nothing.
        tread: see `_tread`.
    """

    highest: float
    last: float
    halved: int
    collapsed: int
    tread: int | None


class CollapsedSchedule(Rule):
    """The schedule cuts the learning rate to almost nothing while most of the run is still ahead.

    ## What it does
    Follows the learning rate through the run. Reports a rate that falls to less than 0.1% of its highest value
    early in the run and never rises again. Also reports a schedule that starts far below the optimizer's own rate
    and never rises.

    ## Why it is bad
    After the cut, the steps change almost nothing, and the loss stays where it was. There are four common causes:

    - A schedule meant for epochs is stepped after every batch. After 100 batches of `ExponentialLR(gamma=0.9)`,
      the rate is 0.00003 of its initial value.
    - `decay_steps`, `milestones` or `T_max` are given in epochs even though the schedule counts batches.
    - With gradient accumulation, the schedule is stepped after every backward pass, not once per optimizer step.
    - The function passed to `LambdaLR` returns the learning rate instead of a factor, so the optimizer uses the
      square of the rate.

    ## Example
    ```python
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for batch in loader:
        ...
        optimizer.step()
        scheduler.step()
    ```

    ## Instead
    ```python
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(epochs):
        for batch in loader:
            ...
            optimizer.step()
        scheduler.step()
    ```

    ## Thresholds
    The run must have at least 50 steps, and the rate must fall below 0.1% of its highest value. The fall must be
    complete

    - within the first third of the run, if the rate falls at every step, or after each of at least three equal
      intervals (step decay);
    - within the first 60% of the run, if the rate falls in one of these two ways and the intervals are shorter
      than 75% of an epoch; or
    - within the first half of the run, if the rate falls from half its peak to 0.1% of its peak within 5% of
      the run.

    A run whose loss had fallen to 10% of its initial value before the rate fell is not reported.

    A schedule is considered to start too low if its first rate is also its highest, and is either the square of
    the optimizer's own rate or less than 0.1% of it.

    ## Known problems
    A run in two phases with one optimizer is wrongly reported if the rate in the second phase is a thousand times
    lower. Only the highest rate among the parameter groups is tracked, so a fall in a single group goes unnoticed.

    ## Sources
    The documentation for `torch.optim.lr_scheduler` ("How to adjust learning rate": whether a scheduler is stepped
    after an epoch or after a batch depends on what it counts) and `keras.optimizers.schedules.ExponentialDecay`
    (`decay_steps`).
    """

    severity = "warning"
    causes = ("learning-rate-too-low", "unchanged-parameters", *NO_LEARNING)
    FIXES = {
        "torch": (
            MOVE,
            "specify the scheduler's durations in batches: epochs * len(loader)",
        ),
        "trainer": "TrainingArguments(lr_scheduler_type=..., max_steps=...)  # the scheduler and max_steps both "
        "count optimizer steps",
        "keras": "specify decay_steps in batches: epochs * len(dataset)",
    }

    @check
    def from_steps(self, steps: StepHistory, losses: LossHistory | None = None) -> Finding | None:
        """Find the step after which the rate stays near 0."""
        fall = _fall(steps)
        if fall is None:
            return None
        smooth = fall.tread is not None and fall.collapsed <= EARLY_IF_SMOOTH * steps.total_steps
        if not smooth and not _is_abrupt(fall, steps.total_steps):
            return None
        if losses is not None and _had_learned(losses, fall.collapsed):
            return None
        if not smooth or fall.tread == 1:
            return self._collapsed(steps, fall, *self._counted(steps))
        pace = f"The rate falls every {fall.tread} steps, and each drop starts from the already reduced rate."
        return self._collapsed(steps, fall, pace, {"torch": (MOVE, *COMPOUNDS), "keras": COMPOUNDS})

    @check
    def from_epochs(
        self, steps: StepHistory, losses: LossHistory, dataset: DatasetFacts, verdicts: Verdicts
    ) -> Finding | None:
        """Find a rate that falls several times an epoch, and is near 0 well before the end."""
        fall, examples = _fall(steps), float(np.median(steps.batch_sizes * steps.passes))
        if not dataset.size or not examples > 0:
            raise NotApplicable("needs the number of training rows")
        epoch = dataset.size / examples
        if fall is None or fall.tread is None or self.name in verdicts.found:
            return None
        if fall.tread >= WITHIN * epoch or fall.collapsed > EARLY_IF_IN_BATCHES * steps.total_steps:
            return None
        if _had_learned(losses, fall.collapsed):
            return None
        often = "at every step" if fall.tread == 1 else f"every {fall.tread} steps"
        why, fix = self._counted(steps)
        return self._collapsed(
            steps, fall, f"The rate falls {often}, but an epoch has {epoch:.0f} steps. {why}", fix
        )

    def _collapsed(
        self, steps: StepHistory, fall: _Fall, why: str, fix: Mapping[str, Fix] | None = None
    ) -> Finding:
        rest, share = steps.total_steps - fall.collapsed, 1 - fall.collapsed / steps.total_steps
        return self.found(
            f"The learning rate falls from {fall.highest:.3g} to less than a thousandth of that by step "
            f"{fall.collapsed:,} and ends at {fall.last:.3g}. The remaining {rest:,} steps, {share:.0%} of "
            f"the run, change almost nothing. {why}",
            fix=fix,
            evidence={
                "highest_rate": fall.highest,
                "last_rate": fall.last,
                "collapsed_at": fall.collapsed,
                "total_steps": steps.total_steps,
            },
            step=fall.collapsed,
        )

    def _counted(self, steps: StepHistory) -> tuple[str, Mapping[str, Fix] | None]:
        """Return what the schedule may count by mistake, and the fix, if it is not the rule's own."""
        passes = int(np.median(steps.passes))
        if passes < 2:
            return COUNTS, None
        return (
            f"Each optimizer step follows {passes} forward passes. Either the scheduler is stepped after each of "
            "them instead of once per optimizer step, or its durations do not match the number of steps.",
            {**self.FIXES, "torch": AFTER_STEP},
        )

    @check
    def from_factor(self, steps: StepHistory, optimizer: OptimizerFacts) -> Finding | None:
        """Compare the rates with the one that the optimizer was created with."""
        known = np.isfinite(steps.learning_rates).all(axis=1)
        full = optimizer.full_rate
        if steps.total_steps < STEPS or not known.any() or full is None:
            raise NotApplicable(f"needs a schedule, and the learning rates of at least {STEPS} steps")
        rates = np.abs(steps.learning_rates[known]).max(axis=1)
        first, highest = float(rates[0]), float(rates.max())
        if not first > 0 or highest > ABOVE * first or not full < UNIT or int(steps.steps[known][0]) > 0:
            return None
        squared = abs(first - full**2) <= SQUARED * full**2
        if not squared and first >= COLLAPSED * full:
            return None
        what = "the square of that" if squared else f"{first / full:.1g} times that"
        return self.found(
            f"The optimizer was created with a learning rate of {full:.3g}, but its schedule starts at "
            f"{first:.3g}, {what}, and never goes higher. A schedule function must return a factor for the "
            "optimizer's learning rate, not the rate itself.",
            fix=(
                "LambdaLR(optimizer, lambda epoch: 0.95**epoch)  # factors that start at 1",
                "for group in optimizer.param_groups: group['lr'] = rate  # to set the rate itself",
            ),
            evidence={"full_rate": full, "first_rate": first, "highest_rate": highest},
            step=0,
        )


def _fall(steps: StepHistory) -> _Fall | None:
    """Return how the rate fell, once and for all, below `COLLAPSED` of its highest value; None if it did not."""
    known = np.isfinite(steps.learning_rates).all(axis=1)
    if steps.total_steps < STEPS or not known.any():
        raise NotApplicable(f"needs the learning rates of at least {STEPS} steps")
    at, rates = steps.steps[known], np.abs(steps.learning_rates[known]).max(axis=1)
    highest = float(rates.max())
    alive = np.flatnonzero(rates >= COLLAPSED * highest)
    if highest == 0 or alive[-1] + 1 >= len(at):
        return None
    until = slice(0, alive[-1] + 2)
    return _Fall(
        highest=highest,
        last=float(rates[-1]),
        halved=int(at[np.flatnonzero(rates >= highest / 2)[-1]]),
        collapsed=int(at[alive[-1] + 1]),
        tread=_tread(at[until], rates[until]),
    )


def _is_abrupt(fall: _Fall, total: int) -> bool:
    return fall.collapsed <= EARLY * total and fall.collapsed - fall.halved <= ABRUPT * total


def _tread(at: Array, rates: Array) -> int | None:
    """Return the number of steps between falls of the rate, from its highest value to its collapse.

    Returns:
        1 if it falls at every step; None if it rises or pauses irregularly.
    """
    highest = int(rates.argmax())
    changes = np.diff(rates[highest:])
    if (changes < 0).all():
        return 1
    lengths = np.diff(at[highest + 1 :][changes != 0])
    if (changes > 0).any() or len(lengths) < TREADS or np.ptp(lengths) > 1 + UNEVEN * lengths.max():
        return None
    return int(np.median(lengths))


def _had_learned(losses: LossHistory, collapsed: int) -> bool:
    """Return whether the loss had fallen far before the rate did."""
    before = losses.values[(losses.steps < collapsed) & np.isfinite(losses.values)]
    return bool(len(before)) and float(np.median(before[-8:])) < LEARNED * abs(float(before[0]))
