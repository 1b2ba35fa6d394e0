"""See `ConstantPredictions`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.rules.optimizer import loss_plateau
from diagnostics.rules.shared import loss_curve, update_size

STEPS = 200
SAMPLES = 5  # sampled steps in the second half of the run: so many has one of 200 steps
EXAMPLES = 100
MOST_FREQUENT = 0.8  # share of the labels; a model may not have learned the rarer classes yet
MISSED = 10  # examples of the rarer classes, none of which was predicted
SAME_FOR_ALL = 0.99  # of the chance level: below it the scores differ across examples
VARIED = 0.1  # share of training predictions outside the most frequent class: with it, the model discriminates


class ConstantPredictions(Rule):
    """A classifier predicts the same class for every input.

    ## What it does
    In a watched run, the rule counts the predicted classes in the sampled training steps and in the evaluations.
    It fires if the model predicts only one class in the second half of the run, or if it predicts only one class
    in evaluation while the training predictions vary.

    ## Why it is bad
    The model has learned nothing about the examples. Accuracy equals the share of the predicted class, which may
    look good. If the predictions are constant only in evaluation, the usual cause is that the running statistics
    of batch norm do not match the data, or that the inputs are preprocessed differently.

    ## Example
    ```python
    nn.BatchNorm1d(64, momentum=0.0001)     # its statistics never reach those of the data
    ```

    ## Instead
    ```python
    nn.BatchNorm1d(64)
    ```

    ## Thresholds
    The run must have at least 200 steps, at least 5 of them sampled in the second half, and at least 100 labelled
    examples. If one class has more than 80% of the labels, there must be at least 10 examples of the other
    classes, and the finding is a note if the scores carry more information than the class frequencies.

    The learning rate must have stopped rising. The updates must have been large enough to change the weights by
    100% of their norm if all of them had pointed in the same direction. The cross entropy must be no lower than
    that of a constant prediction. If the loss curve shows the cause, `learning-rate-too-high` or `loss-plateau`
    reports the run instead.

    If the predictions are constant only in evaluation, the evaluation must have at least 100 examples, and at
    least 10% of the training predictions must differ from the most frequent one. If the labels of the evaluation
    are known, the finding is a warning. If they are unknown, two evaluations are needed and the finding is a note,
    because all examples may belong to one class by design.

    ## Known problems
    Only outputs of shape (examples, classes) are covered, and only if the loss treats them as logits.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "visualize prediction dynamics"; Ioffe and
    Szegedy, "Batch Normalization" (2015), section 3.1.
    """

    severity = "warning"

    @check
    def from_answers(
        self,
        steps: StepHistory,
        answers: PredictionFacts,
        losses: LossHistory | None = None,
        updates: UpdateHistory | None = None,
    ) -> Finding | None:
        """Check the predictions in the second half of the run, and in the last evaluations."""
        if not answers.softmax_loss:
            raise NotApplicable("needs a classifier whose loss is known to expect logits")
        late = answers.steps >= steps.total_steps / 2
        if steps.total_steps < STEPS or late.sum() < SAMPLES:
            raise NotApplicable(
                f"needs at least {STEPS} steps, and predictions from {SAMPLES} steps in the second half of the run"
            )
        labels = answers.labels.sum(axis=0)
        if labels.sum() < EXAMPLES:
            raise NotApplicable(f"needs the labels of at least {EXAMPLES} examples")
        given = answers.answers[late].sum(axis=0)
        if labels.max() > MOST_FREQUENT * labels.sum():
            return self._of_the_most_frequent(steps, answers, updates, late)
        if (given > 0).sum() > 1:
            return self._in_evaluation(answers, given)
        _check_moved(steps, updates)
        if given.sum() < EXAMPLES or _discriminates(answers, late):
            return None
        if _explained_by_loss_curve(steps, losses, updates, answers):
            return None
        answer, first = int(given.argmax()), int(answers.steps[late][0])
        share = labels[answer] / labels.sum()
        return self.found(
            f"From step {first:,} on, the model predicts class {answer} for all {given.sum():,} training "
            f"examples sampled, but only {share:.0%} of them belong to that class. The model has "
            "learned nothing that distinguishes the examples.",
            fix=(
                "train on one small batch first: if the model cannot memorise it, check inputs, labels and "
                "activations",
                "if the model can memorise one batch, change the learning rate",
            ),
            evidence={"class": answer, "examples": int(given.sum()), "labels": labels.tolist()},
            step=first,
        )

    def _of_the_most_frequent(
        self, steps: StepHistory, answers: PredictionFacts, updates: UpdateHistory | None, late: Array
    ) -> Finding | None:
        """Check whether a model of imbalanced data only ever predicts the most frequent class."""
        given, labels, step = answers.answers[late].sum(axis=0), answers.labels[late].sum(axis=0), None
        answer = int(labels.argmax())
        known = np.flatnonzero(answers.evaluation_labels.sum(axis=1) >= EXAMPLES)
        if known.size and given[answer] == given.sum():
            step = int(answers.evaluation_steps[known[-1]])
            given, labels = answers.evaluation_answers[known[-1]], answers.evaluation_labels[known[-1]]
        missed = int(labels.sum() - labels[answer])
        if given[answer] < given.sum() or missed < MISSED:
            return None
        discriminates = _discriminates(answers, late)
        if not discriminates:
            _check_moved(steps, updates)
        first = int(answers.steps[late][0])
        where = f"From step {first:,} on" if step is None else f"In the evaluation after {step:,} steps"
        return self.found(
            f"{where}, the model predicts class {answer} for all {given.sum():,} examples sampled. This is "
            f"correct for {labels[answer] / labels.sum():.0%} of them, which looks like good accuracy, but "
            f"wrong for the other {missed:,} examples."
            + (" The scores do differ across examples, but no other class ever scores highest." * discriminates),
            fix=(
                "report balanced accuracy or per-class recall",
                "weight the classes in the loss",
                "oversample the rare classes",
                "lower the decision threshold for the rare classes",
            ),
            evidence={"class": answer, "examples": int(given.sum()), "labels": labels.tolist()},
            step=first if step is None else step,
            severity="note" if discriminates else "warning",
        )

    def _in_evaluation(self, answers: PredictionFacts, given: Array) -> Finding | None:
        """Check whether the last evaluations have one predicted class even though training has several."""
        if given.sum() - given.max() < VARIED * given.sum():
            return None
        sizes = answers.evaluation_answers.sum(axis=1)
        large = np.flatnonzero(sizes >= EXAMPLES)
        if not large.size:
            return None
        last = answers.evaluation_answers[large[-1]]
        answer, labels = int(last.argmax()), answers.evaluation_labels[large[-1]]
        if last[answer] < last.sum():
            return None
        known = labels.sum() >= EXAMPLES
        if known and labels.max() > MOST_FREQUENT * labels.sum():
            return None
        if not known and (large.size < 2 or answers.evaluation_answers[large[-2]][answer] < sizes[large[-2]]):
            return None
        step = int(answers.evaluation_steps[large[-1]])
        carry = (
            f", of which {labels[answer] / labels.sum():.0%} have that label"
            if known
            else "; their labels are not known"
        )
        return self.found(
            f"In the evaluation after {step:,} steps, the model predicts class {answer} for all {last.sum():,} "
            f"examples sampled{carry}. In training, its predictions vary: the most frequent class makes up "
            f"{given.max() / given.sum():.0%} of them. So either the model or its inputs differ between "
            "training and evaluation.",
            fix=(
                "run a training batch through the model in training mode and in evaluation mode: if the "
                "predictions are constant only after model.eval(), fix the running statistics of batch norm",
                "if the predictions for a training batch also vary after model.eval(), compare the preprocessing "
                "of the training data with that of the evaluation data",
            ),
            evidence={"class": answer, "examples": int(last.sum()), "labels": labels.tolist()},
            step=step,
            severity="warning" if known else "note",
        )


def _check_moved(steps: StepHistory, updates: UpdateHistory | None) -> None:
    """Raise NotApplicable for a run that may just be slow."""
    moved = update_size.moved(steps, updates)
    if update_size.warms_up(steps) or moved is None or moved < loss_plateau.MOVED:
        raise NotApplicable(
            "needs a run past its learning-rate warm-up whose weights have changed by at least their own norm"
        )


def _discriminates(answers: PredictionFacts, late: Array) -> bool:
    """Return whether the scores differ across examples even though the same class always has the highest."""
    sizes, losses = answers.labels[late].sum(axis=1), answers.cross_entropies[late]
    known = np.isfinite(losses) & (sizes > 0)
    shares = answers.labels[late].sum(axis=0) / max(1, sizes.sum())
    chance = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    # A constant prediction cannot have less.
    return bool(known.any()) and float(np.average(losses[known], weights=sizes[known])) < SAME_FOR_ALL * chance


def _explained_by_loss_curve(
    steps: StepHistory, losses: LossHistory | None, updates: UpdateHistory | None, answers: PredictionFacts
) -> bool:
    """Return whether a rule about the loss curve reports the cause."""
    try:
        return loss_curve.worst_curve(steps, losses, updates, answers, loss_plateau.STEPS) is not None
    except NotApplicable:
        return False
