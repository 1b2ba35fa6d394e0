"""See `NotLearning`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.course import FinalAnswers, OutputScore, RowLedger, SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.experiments import NO_BETTER as LITTLE
from diagnostics.facts.experiments import REMAINS, STOOD_AT, Experiments
from diagnostics.facts.loss_call import LossCalls
from diagnostics.facts.training import LossHistory, StepHistory, UpdateHistory
from diagnostics.rules.shared.clipping import cut_down
from diagnostics.rules.shared.experiments import evidence, fixes, in_vain, lower_rate_cures, outcome
from diagnostics.rules.shared.learnable import is_learnable
from diagnostics.rules.shared.update_size import fastest_moved, largest_update, update_size, warms_up
from diagnostics.rules.shared.whole_run import (
    NO_BETTER,
    SHORT,
    STEPS,
    check_whole,
    ending,
    last_third,
    late_loss,
)
from diagnostics.text.join import listed

LEARNED = 0.5  # of the constant prediction's loss; a later training that ends below it has learned
LATE = 0.5  # of the run: later sampled steps are compared with the constant prediction
SAMPLES = 3  # least number of those steps
CHANCE = 2.0  # standard errors of the constant prediction's loss: sampled batches may be this much harder
FALLING = 0.03  # of the same, from the middle third of the losses to the last: the run ended too early
STAYED = 0.05  # of the weights' norm, if all steps pointed in one direction: a few more epochs change nothing
ABOVE, MANY = 1.1, 200  # of the constant prediction's loss; steps in which a run should have reached it
EPOCHS = 2  # of the dataset, where its size is known
FEWEST_AGAIN = 3.0  # rows that are expected twice among those looked at: below, that none is twice shows nothing
# Of a cross entropy, whose constant prediction costs nothing only if all labels are equal: `single-class-labels`
# reports that, and a model that scores candidates, the right one first, has no constant prediction.
ONE_CLASS = 1e-5
NEVER = 1e-6  # of a loss in each step: zero but for rounding in float32
SMALL, LARGE = 1e-4, 1e-2  # of the weights, in one step: outside of this range, the rate is the first suspect

# A run that learned a part: its loss as a share of the constant prediction's, and as a multiple of the error of a
# linear fit; what one third of the run gains, as a share of what is missing.
PART, TIMES, SETTLED = 0.25, 4.0, 0.1
SLOW = 0.1  # of the highest learning rate: below it in the middle of a run, the schedule explains a loss at rest

FAR = 2.0  # of the constant prediction's squared error: the output has not even reached the mean of its targets
STEPS_OF_STATISTICS = 500  # after which batch norm's running statistics are right with Keras' momentum of 0.99

HARDLY, HALF, STEPS_OF_SEVERAL = 0.95, 0.5, 300  # of a constant prediction's error; steps, next to another output

DOMINANT = 1e4  # times the loss of an output that learned nothing: the shared layers hardly see the latter

NEAR_MARGIN = 0.2  # of the margin, in each step: the losses of triplets that still differ vary more

CUT, EARLY = 1e-3, 0.5  # a rate below this share of the highest, before this share of the run

SHOWN = 5  # statements listed as checked; the evidence has all
SHOWN_LEFT = 3  # causes listed as not tested

MOST_FREQUENT = 0.8  # of the labels, as for `constant-predictions`

SUSPECTED = frozenset({"learning-rate-too-low", "learning-rate-too-high", "dead-units", "loss-plateau"})

EXCLUDES: Final = {
    "cannot-overfit-one-batch": ("a copy memorises one batch", "a model that cannot memorise one batch"),
    "ignores-input": ("the output depends on the input", "an output that ignores the input"),
    "unreached-parameters": ("every parameter gets a gradient", "parameters without a gradient"),
    "optimizer-misses-parameters": ("the optimizer has every parameter", "parameters missing from the optimizer"),
    "unchanged-parameters": ("the steps change the weights", "weights that do not change"),
    "broadcast-loss": ("prediction and target have the same shape", "a loss between tensors of different shapes"),
    "targets-out-of-reach": (
        "the last activation can reach the targets",
        "targets outside the range of the last activation",
    ),
    "dead-units": ("no units are dead", "dead units"),
    "saturated-activations": ("activations are not saturated", "saturated activations"),
    "vanishing-gradients": ("gradients reach the first layers", "vanishing gradients"),
    "gradients-not-zeroed": ("gradients are zeroed between steps", "gradients that are never zeroed"),
    "eval-mode-training": ("training runs in training mode", "training in evaluation mode"),
    "sorted-by-label": ("batches mix the classes", "batches of one class each"),
    "unscaled-inputs": ("inputs are reasonably scaled", "inputs that are not scaled"),
    "constant-inputs": ("the inputs vary", "inputs that are all the same"),
    "repeated-batch": ("the batches differ", "the same batch at every step"),
    "collapsed-schedule": ("the learning rate does not collapse", "a learning rate that collapses"),
}
"""By rule: the statement it proves if it found nothing, and the cause that is left if it could not be checked."""


class NotLearning(Rule):
    """The run ends no better than a constant prediction, and no other rule explains it.

    ## What it does
    Compares the losses in the second half of a run with the losses of the best constant prediction on the same
    batches. If the run is no better, the rule fits a linear and an RBF (radial basis function) model to some of
    the rows, to see whether these fits learn something that the model did not.

    Then the rule trains copies of the model from the initial weights on the recorded batches (up to 150 batches
    and 16 MiB). One thing is changed in each copy, such as the scale of the data, the learning rate, the layers or
    the initial weights. The rule compares the losses of the copies on rows that none of them was trained on.
    Copies can be trained only for a PyTorch loop with a single common loss function, or for Keras' `fit` or
    `train_on_batch` with one of Keras' own losses.

    A run that did learn something is compared with the linear fit: it may have settled at a loss that a linear
    model easily beats, for example because weight decay is too strong.

    A triplet loss is compared with its margin, which is its value if all embeddings are equal. If a model has
    several outputs, each output is compared with its own constant prediction.

    ## Why it is bad
    In its first steps, any model learns the constant prediction, which is the mean of the targets or the class
    frequencies. A run that ends at the loss of that prediction has learned nothing from its inputs.

    ## Example
    ```python
    for images, labels in loader:
        # leaves one number per image
        features = encoder(images).mean(dim=(1, 2, 3), keepdim=True)
        loss = F.cross_entropy(head(features.flatten(1)), labels)
    ```

    ## Instead
    ```python
    for images, labels in loader:
        features = encoder(images).mean(dim=(2, 3))  # one number per channel
        loss = F.cross_entropy(head(features), labels)
    ```

    ## Thresholds
    The run must have at least 100 steps (50 for a note), its learning rate must have stopped rising, and the
    script must have run to completion. The loss must be at least 97% of the constant prediction's loss, both over
    the last third of the run and at the sampled steps in the second half.

    The finding is a warning if one of these shows that the model could have learned something:

    - The rows occur more than once in a run of at least 200 steps (two epochs or more if the size of the dataset
      is known), so the model could have memorised the targets.
    - A model fitted to half of the sampled rows has at most 70% of the constant prediction's error on the other
      half. For classes, its error must also be at least five standard errors below that of the constant
      prediction.
    - Each row, of 3 to 64 columns, was standardised separately, or a number used for missing values is at least
      100 standard deviations away from all other values.
    - After 200 steps or more, the run ended with a loss at least 10% higher than the constant prediction's loss.

    The finding is a note if later training runs of the same model end below half of the constant prediction's
    loss, as after a first stage that trains only a new head.

    The finding is also a warning if a single change makes a copy learn, that is, if three conditions hold:

    - None of the unchanged copies gets below 90% of the constant prediction's loss.
    - The changed copy gets below 85% of the constant prediction's loss, even with its batches in a different
      order.
    - The loss of the changed copy is below the lowest loss of the unchanged copies by at least three times the
      spread of their losses.

    If the change concerns neither the learning rate nor the optimizer, and the copy trained with it gets down to
    75% of the constant prediction's loss, the limit of 97% for the last third of the run drops to 90%.

    In all other cases, the finding is a note. Even with such evidence or such a change, it is usually a note if
    the loss was still falling at the end.

    A run with a mean squared error of one number per row is compared with a linear model if three conditions hold:

    - The run has at least 200 steps.
    - In the middle third of the run, the learning rate is on average at least 10% of its peak.
    - The loss has settled: from the middle third to the last, it changes by at most a tenth of the final gap to
      the linear model's loss.

    The run's loss must be at least 25% of the constant prediction's loss, and at least four times the loss of the
    linear fit on held-out rows. The finding is a warning if a single change (other than the learning rate, the
    optimizer or the removal of dropout) brings a copy below half of the run's loss, and a note otherwise. A model
    with dropout is reported only if there is such a change.

    A loss that compares predictions with targets is reported as a warning if it is 0 (to within 1e-6) at every
    step of a run with at least 100 steps. In such a run, predictions and targets are always equal.

    In Keras, a model with several outputs or penalties is judged after at least 100 steps (500 with batch norm) by
    its predictions for training rows. An output is reported if its error is at least 97% of a constant
    prediction's error. If there is no such output, one is reported if three conditions hold:

    - After 300 steps or more, its error is still at least 95% of a constant prediction's error.
    - The error of a simple fit to its targets is at most half of a constant prediction's error.
    - Another output has learned: its error is at most half of its own constant prediction's error.

    If another output's weighted loss is at least 10,000 times the weighted loss of the output that learned
    nothing, the finding names this dominant output: its targets are not scaled.

    ## Known problems
    A control experiment on random labels is reported as a note. A model that explains less than 3% of the targets'
    variance is reported even though it has learned a weak signal. Weighted losses are not checked. Models with
    several outputs or penalties are checked only in Keras, and only if they are built from Keras' own layers.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019): verify that the loss beats an
    input-independent baseline; overfit one batch.
    """

    severity = "warning"
    causes = ("constant-predictions", "cannot-overfit-one-batch")

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """An experiment that puts one thing right shows that what is only suspected follows from it."""
        own, other = (cause, finding) if cause.rule == self.name else (finding, cause)
        if other.rule == "learning-rate-too-high" and lower_rate_cures(own):
            return cause is other  # not only suspected: an experiment confirms it
        if other.rule == "constant-predictions" and _is_of_the_most_frequent(other):
            return cause is other  # the majority class explains it
        shown = any(one.rule == self.name and one.evidence.get("one_thing") for one in (cause, finding))
        return cause.rule == self.name if shown and {cause.rule, finding.rule} & SUSPECTED else None

    def after_run(self, finding: Finding, losses: LossHistory) -> Finding:
        """Make it a note if later trainings of the same model learned."""
        constant, ended = finding.evidence.get("constant_loss"), ending(losses)
        if constant is None or not ended < LEARNED * float(constant):
            return finding
        message = f"{finding.message} Later training of this model learned: its last losses average {ended:.2g}."
        return replace(finding, severity="note", message=message)

    @check
    def from_course(
        self,
        steps: StepHistory,
        losses: LossHistory,
        targets: TargetHistory,
        verdicts: Verdicts,
        updates: UpdateHistory | None = None,
        clips: ClipFacts | None = None,
        experiments: Experiments | None = None,
        ledger: RowLedger | None = None,
        dataset: DatasetFacts | None = None,
    ) -> Finding | None:
        """Compare the end of the run with the constant prediction."""
        if steps.total_steps < SHORT:
            raise NotApplicable(f"needs at least {SHORT} steps")
        if not verdicts.complete:
            raise NotApplicable("needs a run that was not interrupted")
        if not verdicts.trained_alone:
            raise NotApplicable("needs a run that trains only this model")
        if warms_up(steps):
            raise NotApplicable("needs a run that is past its learning-rate warm-up")
        late = targets.steps >= LATE * steps.total_steps
        last = last_third(losses, steps.total_steps)
        if late.sum() < SAMPLES or not last.size or not np.isfinite(last).all():
            raise NotApplicable(f"needs {SAMPLES} sampled steps and finite losses in the second half of the run")
        constant, ended = float(targets.constant_losses[late].mean()), float(last.mean())
        overall = float(targets.constant_losses.mean())
        sampling = CHANCE * float(targets.constant_losses.std()) / math.sqrt(len(targets.steps))
        if constant <= 0 or targets.losses[late].mean() < NO_BETTER * constant:
            return None  # compared on the same batches
        if targets.kind == "cross_entropy" and overall <= ONE_CLASS:
            return None
        if ended < NO_BETTER * overall - sampling:
            return None
        before = last_third(losses, steps.total_steps, further=1)
        falling = bool(before.size) and float(before.mean()) - ended > FALLING * overall
        size = update_size(updates, steps.total_steps // 2)
        if size is not None and size < SMALL and updates is not None and largest_update(updates) > LARGE:
            size = None  # large first, then small: the rate is not too low
        moved = fastest_moved(steps, updates)
        far = ended >= ABOVE * overall and steps.total_steps >= MANY
        stayed = far or (moved is not None and ended >= overall and 0 < moved < STAYED)
        cut = _cut(steps)
        advice = _advice(size if cut is None else None, falling and not stayed, targets.fit)
        if is_learnable(targets.fit):
            seen, repair = cut_down(clips if size is not None and size < SMALL else None)
        else:
            seen, repair = _lost(targets)
        known = is_learnable(targets.fit) or bool(seen)
        learnable = known or far or _comes_again(steps, ledger, dataset)
        again = AGAIN if learnable and not known and not far else ""
        cures = () if experiments is None else experiments.cures
        cured = bool(cures) and (not cures[0].breadth or stayed or not falling)
        why = f"{_evidence(targets.fit, falling)} {again}{seen}{_differential(verdicts, cut)}"
        if experiments is not None:
            why = outcome(experiments) if cures else f"{why} {in_vain(experiments)}"
        cures_first = fixes(experiments) if experiments is not None else ()
        short = steps.total_steps < STEPS
        if short:
            why = f"The run has only {steps.total_steps} steps, which may be too few. {why}"
        return self.found(
            "The model ended up no better than a constant prediction: over the last third of training, the "
            f"{_NAMES[targets.kind]} was {ended:.4g}, against {overall:.4g} for a constant prediction (measured "
            f"on {targets.examples:,} sampled targets). {why}",
            fix=(*cures_first, *(repair if cut is None else (_PATIENCE,)), *advice),
            severity=None if not short and (cured or (learnable and (stayed or not falling))) else "note",
            evidence={
                "ended": ended,
                "constant_loss": overall,
                "steps": steps.total_steps,
                "still_falling": falling,
                "update_size": size,
                "fit_error": None if targets.fit is None else targets.fit.error,
                "fit_constant_error": None if targets.fit is None else targets.fit.constant_error,
                "ruled_out": [rule for rule in EXCLUDES if rule in verdicts.judged - verdicts.found],
                "not_judged": [rule for rule in EXCLUDES if rule not in verdicts.judged],
                **({} if experiments is None else evidence(experiments)),
            },
            step=steps.total_steps - 1,
        )

    @check
    def from_linear_fit(
        self,
        steps: StepHistory,
        losses: LossHistory,
        targets: TargetHistory,
        verdicts: Verdicts,
        experiments: Experiments | None = None,
    ) -> Finding | None:
        """Look for a run that learned something, settled, and has learned less than a linear model."""
        check_whole(steps, verdicts)
        fit = targets.fit
        if fit is None or fit.of_classes or targets.outputs > 1 or not fit.constant_error > 0:
            raise NotApplicable("needs a regression with one output, and a simple model fitted to its rows")
        if targets.kind != "mean_squared_error" or not math.isfinite(fit.linear_error):
            raise NotApplicable("needs a mean squared error")
        late = targets.steps >= LATE * steps.total_steps
        last, before = (last_third(losses, steps.total_steps, further=each) for each in (0, 1))
        if steps.total_steps < MANY or late.sum() < SAMPLES or not last.size or not before.size:
            raise NotApplicable(f"needs at least {MANY} steps")
        if warms_up(steps) or not _still_fast(steps):
            raise NotApplicable("needs a learning rate that is not cut before the last third of the run")
        constant, ended = float(targets.constant_losses.mean()), float(last.mean())
        share = float(targets.losses[late].mean()) / float(targets.constant_losses[late].mean())
        possible = fit.linear_error / fit.constant_error
        missing = ended - possible * constant
        fallen = float(before.mean()) - ended
        if not max(PART, TIMES * possible) <= min(share, ended / constant) < NO_BETTER:
            return None
        if not abs(fallen) <= SETTLED * missing or abs(fallen) > FALLING * constant:
            return None
        cures = () if experiments is None else experiments.cures
        narrow = bool(cures) and not cures[0].breadth and cures[0].name not in REGULARISES
        if experiments is not None and not narrow and experiments.tried & REGULARISES:
            return None
        tried = "" if experiments is None else outcome(experiments) if cures else in_vain(experiments, part=True)
        return self.found(
            f"The model has learned less than a linear model would: over the last third of training, the mean "
            f"squared error was {ended:.4g}, or {ended / constant:.0%} of the error of a constant prediction "
            f"({constant:.4g}). A linear model fitted to {fit.fitted} rows has {possible:.0%} of that error on "
            f"{fit.predicted} held-out rows. The loss is no longer falling. {tried}",
            fix=(*(fixes(experiments) if narrow and experiments is not None else ()), *LESS),
            severity=None if narrow else "note",
            evidence={
                STOOD_AT: ended,
                "constant_loss": constant,
                "fit_error": fit.linear_error,
                "fit_constant_error": fit.constant_error,
                "steps": steps.total_steps,
                **({} if experiments is None else evidence(experiments)),
            },
            step=steps.total_steps - 1,
        )

    @check
    def from_zeros(
        self, calls: LossCalls, losses: LossHistory, steps: StepHistory, verdicts: Verdicts
    ) -> Finding | None:
        """Look for a loss with nothing to learn from: 0 from the first step to the last."""
        call = calls.calls[0] if calls.calls else None
        if call is None or not call.whole or call.target is None or call.weighted:
            raise NotApplicable("needs a loss known to compare predictions with targets")
        check_whole(steps, verdicts)
        if not losses.values.size or not np.abs(losses.values).max() <= NEVER:
            return None
        largest = float(np.abs(losses.values).max())
        return self.found(
            f"{call.function} is 0 to within rounding error (at most {largest:.1g}) at all "
            f"{len(losses.values):,} steps with a recorded loss. Prediction and target are equal from the first "
            "step onwards, so there is nothing to learn: either the target is computed from the prediction, or "
            "both are constant.",
            fix=(
                "compute the target from the data, or with a different model",
                "print the prediction and the target of one batch",
            ),
            evidence={"largest": largest, "steps": steps.total_steps},
            step=0,
        )

    @check
    def from_experiments(
        self, experiments: Experiments, steps: StepHistory, losses: LossHistory, verdicts: Verdicts
    ) -> Finding | None:
        """Report a change of one thing with which the run would have learned, where its targets are not known."""
        check_whole(steps, verdicts)
        ended = late_loss(losses, steps.total_steps)
        least = experiments.constant * (LITTLE if _is_certain(experiments) else NO_BETTER)
        if not experiments.cures or not ended >= least:
            return None
        how = "did not learn" if ended >= NO_BETTER * experiments.constant else "hardly learned"
        return self.found(
            f"The model {how}: over the last third of training, the loss averaged {ended:.4g}. "
            f"{outcome(experiments)}",
            fix=fixes(experiments),
            evidence={"ended": ended, "steps": steps.total_steps, **evidence(experiments)},
            step=steps.total_steps - 1,
        )

    @check
    def from_answers(self, answers: FinalAnswers) -> Finding | None:
        """Compare the trained model's predictions, output by output, with a constant one."""
        least = STEPS_OF_STATISTICS if answers.keeps_statistics else STEPS
        if answers.steps < least:
            raise NotApplicable(f"needs at least {least} steps")
        unlearned = [one for one in answers.outputs if one.error >= NO_BETTER * one.constant_error > 0]
        unlearned = unlearned or [one for one in answers.outputs if _lags_behind(one, answers)]
        if not unlearned:
            return None
        worst = max(unlearned, key=lambda one: one.error / one.constant_error)
        far = worst.kind == "mean_squared_error" and worst.error >= FAR * worst.constant_error
        low, high = worst.answers
        reason = (
            f"The targets are {worst.target_mean:,.6g} ± {worst.target_spread:,.6g}, and the predictions range "
            f"from {low:,.6g} to {high:,.6g}: they have not even reached the mean of the targets."
            if far
            else _evidence(worst.fit, falling=False)
        )
        outweighs = None if far else _outweighs(worst, answers)
        if outweighs is not None:
            reason = f"{_of_dominant(outweighs, worst)} {reason}"
        if far:
            fix = _of_scale(answers)
        elif outweighs is not None:
            fix = _of_scale(answers, outweighs.name)
        else:
            fix = PENALTY if len(answers.outputs) == 1 else SHARED
        return self.found(
            f"After {answers.steps:,} steps, {_called(worst, answers)} {_how_much(worst)} better than a constant "
            f"prediction: on {worst.rows:,} training rows its {_NAMES[worst.kind]} is {worst.error:.4g}, "
            f"against {worst.constant_error:.4g} for a constant prediction. {reason}",
            fix=fix,
            severity=None if far or is_learnable(worst.fit) else "note",
            evidence={
                "output": worst.name,
                "error": worst.error,
                "constant_error": worst.constant_error,
                "answers": [low, high],
                "target_mean": worst.target_mean,
                "steps": answers.steps,
                "dominant": None if outweighs is None else outweighs.name,
            },
        )

    @check
    def from_triplets(
        self, calls: LossCalls, steps: StepHistory, losses: LossHistory, verdicts: Verdicts
    ) -> Finding | None:
        """Look for a triplet loss that ends at its margin, as it does if all embeddings are the same."""
        call = next((call for call in calls.calls if call.contract.targets == "triplets"), None)
        margin = None if call is None else call.options.get("margin", 1.0)
        if call is None or call.options.get("reduction", "mean") != "mean" or not isinstance(margin, int | float):
            raise NotApplicable
        check_whole(steps, verdicts)
        last = last_third(losses, steps.total_steps)
        if not last.size or margin <= 0 or not np.abs(last - margin).max() <= NEAR_MARGIN * margin:
            return None
        if float(last.mean()) < NO_BETTER * margin:
            return None
        which = "about equal to" if float(last.mean()) * NO_BETTER < margin else "no better than"
        return self.found(
            f"Over the last third of the run, {call.function} averages {last.mean():.4g}, {which} its margin of "
            f"{margin:.4g}: negatives are no further from the anchor than positives are. If all embeddings "
            "collapse to one point, the loss is exactly the margin.",
            fix=(
                f"check the order of the arguments: {call.function}(anchor, positive, negative)",
                "start with random negatives instead of the hardest negatives, and lower the learning rate",
            ),
            evidence={"ended": float(last.mean()), "margin": float(margin), "steps": steps.total_steps},
            step=steps.total_steps - 1,
        )


REGULARISES: Final = frozenset({"dropout off"})  # which makes the loss of training larger, and of nothing else
LESS: Final = (
    "train without weight decay and without other regularisation: if the loss is then lower, the regularisation "
    "is too strong",
    "check that every input reaches the model, and that no layer is frozen",
)
PENALTY: Final = (
    "if the loss includes weight regularisation, check its coefficient, usually 1e-4 to 1e-3: a penalty that "
    "dominates the loss drives all weights to 0",
    "train on one batch without any penalty, and check that the model can memorise it",
)
SHARED: Final = (
    "train this output alone: if the model then learns it, the other losses dominate; bring all losses to the "
    "same scale with loss_weights",
    "print ten inputs with their targets, and check that they match",
)


def _is_certain(experiments: Experiments) -> bool:
    """Return whether putting one thing right gains much, so that a run that learned a little is judged too."""
    best = next(iter(experiments.cures), None)
    return best is not None and not best.breadth and best.reached <= REMAINS * experiments.constant


def _is_of_the_most_frequent(finding: Finding) -> bool:
    """Return whether constant predictions are those of a class that most of the labels have."""
    labels = finding.evidence.get("labels") or [0]
    return bool(max(labels) > MOST_FREQUENT * sum(labels))


def _called(worst: OutputScore, answers: FinalAnswers) -> str:
    return "the model is" if len(answers.outputs) == 1 else f"output '{worst.name}' is"


def _how_much(worst: OutputScore) -> str:
    return "no" if worst.error >= NO_BETTER * worst.constant_error else "barely"


def _lags_behind(one: OutputScore, answers: FinalAnswers) -> bool:
    """Return whether an output lags behind both a simple fit and another output."""
    if answers.steps < STEPS_OF_SEVERAL or not one.error >= HARDLY * one.constant_error > 0:
        return False
    fits = one.fit is not None and is_learnable(one.fit) and one.fit.error <= HALF * one.fit.constant_error
    return fits and any(other.error <= HALF * other.constant_error for other in answers.outputs)


def _outweighs(worst: OutputScore, answers: FinalAnswers) -> OutputScore | None:
    """Return the output whose weighted loss is far above that of an unlearned one, at its start and at its end."""
    largest = max(answers.outputs, key=_size)
    return largest if largest is not worst and _size(largest) >= DOMINANT * _size(worst) else None


def _size(one: OutputScore) -> float:
    return one.weight * min(one.error, one.constant_error)


def _of_dominant(largest: OutputScore, worst: OutputScore) -> str:
    times = largest.weight * largest.error / (worst.weight * worst.error)
    targets = ""
    if largest.kind == "mean_squared_error":
        targets = (
            f", because its targets are not scaled ({largest.target_mean:,.6g} ± {largest.target_spread:,.6g})"
        )
    return (
        f"The loss of output '{largest.name}' is {largest.weight * largest.error:.3g}, {times:.1g} times "
        f"larger{targets}. Its gradient outweighs that of '{worst.name}' in all layers that they share."
    )


def _of_scale(answers: FinalAnswers, name: str | None = None) -> tuple[str, ...]:
    scale = "targets = (targets - mean) / std  # mean and std of the training targets"
    if len(answers.outputs) == 1:
        return (scale,)
    which = "these targets" if name is None else f"the targets of '{name}'"
    return (f"standardise {which}, so that their loss does not outweigh the other losses: {scale}",)


_NAMES: Final = {
    "cross_entropy": "cross-entropy loss",
    "binary_cross_entropy": "binary cross-entropy loss",
    "mean_squared_error": "mean squared error",
    "mean_absolute_error": "mean absolute error",
}


def _lost(targets: TargetHistory) -> tuple[str, tuple[str, ...]]:
    """Describe what the inputs have visibly lost, and how to keep it."""
    if targets.rows_standardised:
        return (
            "Each input row has mean 0 and standard deviation 1: every row was standardised on its own, "
            "which removed its level and scale. ",
            ("standardise columns, not rows: (x - x.mean(axis=0)) / x.std(axis=0), with training statistics",),
        )
    if (one := targets.sentinel) is not None:
        return (
            f"In column {one.column} of the inputs, {one.share:.1%} of the rows hold {one.value:.4g}, which is "
            f"{one.apart:,.0f} standard deviations away from all other values and looks like a placeholder for "
            "missing values. On that scale, all other values are almost equal. ",
            ("replace the placeholder with the column's median, or drop these rows, before scaling the columns",),
        )
    return "", ()


AGAIN: Final = "The model saw the same rows more than once but did not even memorise them. "


def _comes_again(steps: StepHistory, ledger: RowLedger | None, dataset: DatasetFacts | None) -> bool:
    """Return whether rows come more than once, in a run of enough steps to memorise some of them."""
    if steps.total_steps < MANY:
        return False
    size = None if dataset is None else dataset.size
    seen = steps.total_steps * float(np.median(steps.batch_sizes)) * max(1.0, float(np.median(steps.passes)))
    if size and seen < EPOCHS * size:
        return False  # some rows may be there twice
    if ledger is not None and (ledger.rows or ledger.drawn > ledger.distinct):
        return True
    # Rows may be augmented, or made up, each time that they are drawn.
    return bool(size) and (ledger is None or ledger.drawn**2 < 2 * FEWEST_AGAIN * (size or 0))


def _evidence(fit: SimpleFit | None, falling: bool) -> str:
    still = "The loss was still falling. " if falling else ""
    if fit is None:
        return f"{still}It is unknown whether the inputs predict the targets."
    kind = "linear" if fit.linear else "radial-basis"
    if is_learnable(fit):
        return (
            f"{still}The inputs do predict the targets: a {kind} model fitted to {fit.fitted} rows has "
            f"{fit.error / fit.constant_error:.0%} of the error of a constant prediction on {fit.predicted} "
            "held-out rows."
        )
    return (
        f"{still}Neither a linear nor a radial-basis model fitted to {fit.fitted} rows can predict the targets "
        f"of {fit.predicted} held-out rows: the targets may be unrelated to the inputs."
    )


_PATIENCE: Final = (
    "keep the learning rate constant until the loss falls: a schedule that reacts to a plateau needs a patience "
    "of several epochs and a small threshold (1e-4)"
)


def _still_fast(steps: StepHistory) -> bool:
    """Return whether the learning rate was not yet cut in the middle third of the run; True if it is not known."""
    known = np.isfinite(steps.learning_rates).all(axis=1)
    middle = known & (steps.steps >= steps.total_steps / 3) & (steps.steps < 2 * steps.total_steps / 3)
    if not middle.any():
        return True
    rates = np.abs(steps.learning_rates).max(axis=1)
    return bool(rates[middle].mean() >= SLOW * rates[known].max())


def _cut(steps: StepHistory) -> int | None:
    """Return the step at which the learning rate drops to almost 0, if that is early in the run."""
    known = np.isfinite(steps.learning_rates).all(axis=1)
    if not known.any():
        return None
    at, rates = steps.steps[known], np.abs(steps.learning_rates[known]).max(axis=1)
    alive = np.flatnonzero(rates >= CUT * rates.max() * (1 + 1e-6))
    if not len(alive) or alive[-1] + 1 >= len(at) or at[alive[-1] + 1] > EARLY * steps.total_steps:
        return None
    return int(at[alive[-1] + 1])


def _differential(verdicts: Verdicts, cut: int | None = None) -> str:
    first = (
        "" if cut is None else f"From step {cut:,} onwards, the learning rate is at most a thousandth of its peak."
    )
    clean = [rule for rule in EXCLUDES if rule in verdicts.judged - verdicts.found]
    out = [EXCLUDES[rule][0] for rule in clean if cut is None or rule != "collapsed-schedule"]
    left = [text for rule, (_, text) in EXCLUDES.items() if rule not in verdicts.judged]
    fine = f"Checked and fine: {listed(out, most=SHOWN)}." if out else ""
    not_tested = f"Possible causes not checked: {listed(left, most=SHOWN_LEFT)}." if left else ""
    return " ".join(filter(None, (first, fine, not_tested)))


def _percent(share: float) -> str:
    """Write a share as a percentage with one significant digit: ``30%``, ``0.002%``."""
    return f"{float(f'{100 * share:.1g}'):g}%"


def _advice(size: float | None, falling: bool, fit: SimpleFit | None) -> tuple[str, ...]:
    one_batch = (
        "train on one batch for 200 steps: if the model cannot memorise the batch, look for the bug between input "
        "and loss; if it can, look at the data and the learning rate"
    )
    rows = "print ten inputs with their targets, exactly as the model receives them, and check that they match"
    if falling:
        return "train longer, or at a higher learning rate", one_batch
    if size is not None and size < SMALL:
        return (
            f"multiply the learning rate by 10: each step changes the weights by only {_percent(size)} of "
            "their norm",
            one_batch,
        )
    if size is not None and size > LARGE:
        return (
            f"divide the learning rate by 10: each step changes the weights by {_percent(size)} of their norm",
            one_batch,
        )
    return (one_batch, rows) if is_learnable(fit) else (rows, one_batch)
