"""Plans the runs on 1, 2 and 5 examples and on one batch, within seconds, and says what came out. No framework."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from diagnostics.collectors.shared.overfit_plan import OUR_RATES, RESCALED_RATES, SMALL, SMALL_RATE, SMALL_STEPS
from diagnostics.collectors.shared.overfit_run import Plan
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, UsersCodeRaised
from diagnostics.errors import typed_message
from diagnostics.facts.loss_contracts import LossKind
from diagnostics.facts.trials import Outcome, SubsetRun, SubsetTrial
from diagnostics.text.join import count_of

from .answers import CLASSIFIES, ZERO, Seen
from .choice import Subsets, ordered

COUNTS = (1, 2, 5)  # examples; then the batch
STEPS = 100  # of a run: one example takes 5 to 30, a batch of 32 of a small classifier 50 to 150
LONGER = 300  # once, at the best of our rates, before a failure is stated
HALF = 0.5  # of the loss of the best constant prediction: from there on no further rate is tried
CLEARLY_BELOW = 0.9  # likewise: less is not told from it; the number is that of cannot-overfit-one-batch
MOSTLY_TRAINABLE = 0.5  # of all scalars; a head over frozen features may take thousands of steps
REGRESSIONS: tuple[LossKind, ...] = ("mean_squared_error", "mean_absolute_error")
FAR = 1.5  # times the loss of the best constant prediction
LEAST_FALL = 1e-5  # of the first loss of a regression: targets in dollars are far away, and approached slowly


def trials(subsets: Subsets, seconds: float) -> Iterator[SubsetTrial]:
    """Train on 1, 2 and 5 examples, then on the batch; end with the first count that is not learned.

    Each count gets an equal share of the seconds that are left; what it does not use is left for the next.
    """
    order, ends = ordered(subsets.rows), time.monotonic() + seconds
    counts = [*(count for count in COUNTS if count < len(order)), len(order)]
    for place, count in enumerate(counts):
        now = time.monotonic()
        share = max(0.0, ends - now) / (len(counts) - place)
        trial = _Trial(subsets, order[:count]).made(now + share, whole_batch=count == len(order))
        yield trial
        if trial.outcome == "not learned":
            return


@dataclass
class _Trial:
    """Trains on the same examples with one setting after the other, until one of them learns them."""

    subsets: Subsets
    chosen: Sequence[int]
    runs: list[SubsetRun] = field(default_factory=list)
    baseline: float | None = None

    def made(self, deadline: float, whole_batch: bool) -> SubsetTrial:
        """Make the runs, and say what came out."""
        started = time.monotonic()
        outcome: Outcome | None = None
        reason = ""
        try:
            for plan in self._plans():
                if time.monotonic() > deadline and (self.runs or self.chosen[1:]):  # one run is made in any case
                    outcome, reason = "not judged", "the time was used up"
                    break
                if self._run(plan, deadline).learned:
                    break
        except (CannotJudge, StageFailed) as why:
            outcome, reason = "not judged", str(why)
        except UsersCodeRaised as raised:
            outcome, reason = "not judged", typed_message(raised.__cause__ or raised)
        if outcome is None or self._is_half_way():
            outcome, reason = self._outcome(time.monotonic() <= deadline, whole_batch)
        return self._described(whole_batch, outcome, reason, time.monotonic() - started)

    def _run(self, plan: Plan, deadline: float) -> SubsetRun:
        seen = Seen(len(self.chosen), self.subsets.kind)
        plan = replace(plan, stop=lambda: seen.learned or time.monotonic() > deadline)
        done = self.subsets.run(self.chosen, plan, seen)
        self.baseline = seen.baseline if self.baseline is None else self.baseline
        steps, answers, probabilities = seen.history()
        run = SubsetRun(
            theirs=plan.theirs,
            optimizer=self.subsets.optimizer if plan.theirs else "AdamW",
            learning_rate=plan.learning_rate,
            losses=done.losses,
            learned=seen.learned,
            largest_update=max(done.update_ratios, default=0.0),
            output_spread=done.output_spread,
            steps_kept=steps,
            answers=answers,
            probabilities=probabilities,
        )
        self.runs.append(run)
        return run

    def _plans(self) -> Iterator[Plan]:
        """Yield settings; when the next is asked for, the run before it has been made."""
        subsets = self.subsets
        if subsets.rate is not None:
            yield Plan(subsets.rate, True, 1.0, STEPS, None)
        for number, rate in enumerate(OUR_RATES):
            if number > 1 and self._is_half_way():
                break
            yield Plan(rate, False, 1.0, STEPS, None)
        if self._reference is None:  # no number of steps would tell whether it is low enough
            return
        best = min((run for run in self.runs if not run.theirs), key=lambda run: run.lowest)
        if not self._is_half_way() and subsets.rescalable and subsets.kind in REGRESSIONS and self.baseline:
            for rate in RESCALED_RATES:
                yield Plan(rate, False, 1.0, STEPS, None, rescaled=True)
        if self._is_half_way() and len(self.chosen) > COUNTS[-1]:  # of a few examples, the longer run is cheap
            return
        yield Plan(best.learning_rate, False, 1.0, LONGER, None)
        if subsets.num_trainable <= SMALL and not self._is_half_way():
            yield Plan(SMALL_RATE, False, 1.0, SMALL_STEPS, None)

    @property
    def _reference(self) -> float | None:
        """The loss of the best constant prediction; where that is 0, or for one example, the first loss."""
        if self.baseline is None or self.baseline > ZERO:
            return self.baseline
        return next((run.losses[0] for run in self.runs if run.losses), None)

    def _is_half_way(self) -> bool:
        reference = self._reference
        return reference is not None and any(run.learned or run.lowest <= HALF * reference for run in self.runs)

    def _outcome(self, in_time: bool, whole_batch: bool) -> tuple[Outcome, str]:
        if any(run.learned for run in self.runs):
            return "learned", ""
        best = min(self.runs, key=lambda run: run.lowest)
        fell = (
            f"the loss fell from {best.losses[0]:.4g} to {best.lowest:.4g} in {count_of(len(best.losses), 'step')}"
        )
        if not math.isfinite(best.lowest):
            return "not judged", "the loss was never finite"
        reference = self._reference
        if reference is None:
            return "not judged", f"how low this loss can get is not known; {fell}"
        equal, contradictions = self._equal_inputs()
        if contradictions and not whole_batch and in_time:  # rows with different inputs come first
            return (
                "not learned",
                f"{contradictions} of {equal} examples that repeat inputs have another label; {fell}",
            )
        if best.lowest <= CLEARLY_BELOW * reference:
            return "partly", fell
        if not in_time:
            return "not judged", "the time was used up"
        for excuse in self._excuses(best, reference):
            return "not judged", excuse
        constant = (
            f"; a constant prediction reaches {reference:.4g}" if self.baseline and self.baseline > ZERO else ""
        )
        return "not learned", f"the loss never fell below {best.lowest:.4g}{constant}"

    def _excuses(self, best: SubsetRun, reference: float) -> Iterator[str]:
        """Say what else than a bug may be the reason."""
        subsets = self.subsets
        if subsets.num_trainable < MOSTLY_TRAINABLE * subsets.num_parameters:
            yield "most of the model is frozen: the layers that are trained may take thousands of steps"
        if subsets.num_trainable < len(self.chosen):
            yield "the model has fewer trainable numbers than there are examples"
        if subsets.kind in REGRESSIONS and self._is_far(best):
            yield "the targets may be too far away, in their unit, for so few steps"
        fallen_lately = min(best.losses[: max(1, len(best.losses) // 2)]) - best.lowest
        if best.lowest - fallen_lately <= CLEARLY_BELOW * reference:
            yield "the loss was still falling when the steps were used up"

    def _is_far(self, best: SubsetRun) -> bool:
        """Whether a regression has not come near the best constant prediction, and was on its way."""
        if self.baseline and self.baseline > ZERO:
            return best.lowest > FAR * self.baseline
        return best.lowest < (1 - LEAST_FALL) * best.losses[0]

    def _equal_inputs(self) -> tuple[int, int]:
        """Count the examples whose inputs equal those of an earlier one, and those of them with another target."""
        rows, first = self.subsets.rows, dict[bytes, bytes]()
        equal = contradictions = 0
        for row in self.chosen:
            if (inputs := rows.inputs[row]) in first:
                equal += 1
                contradictions += first[inputs] != rows.targets[row]
            first.setdefault(inputs, rows.targets[row])
        return equal, contradictions

    def _described(self, whole_batch: bool, outcome: Outcome, reason: str, seconds: float) -> SubsetTrial:
        rows = self.subsets.rows
        equal, contradictions = self._equal_inputs()
        values = None if rows.values is None else rows.values[list(self.chosen)]
        there = frozenset[int]() if values is None or not rows.classes else frozenset(map(int, values))
        return SubsetTrial(
            examples=len(self.chosen),
            whole_batch=whole_batch,
            outcome=outcome,
            reason=reason,
            baseline=self.baseline,
            classifies=self.subsets.kind in CLASSIFIES,
            distinct_labels=len({rows.targets[row] for row in self.chosen}),
            missing_labels=len(rows.classes - there) if rows.classes else None,
            equal_inputs=equal,
            contradictions=contradictions,
            targets=values,
            runs=tuple(self.runs),
            seconds=seconds,
        )
