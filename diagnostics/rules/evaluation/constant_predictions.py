"""See `ConstantPredictions`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import Array
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.rules.optimizer import loss_plateau
from diagnostics.rules.shared import loss_curve, update_size

STEPS = 200
LOOKS = 6  # in the second half of the run
EXAMPLES = 100
COMMONEST = 0.8  # of the labels; of a rarer rest a model may rightly have learned nothing yet
MISSED = 10  # examples of the rarer rest that were looked at, and of which none was found
SAME_FOR_ALL = 0.99  # of the chance level: below it the scores differ between examples
VARIED = 0.1  # of the answers in training are not of the commonest class: there the model tells classes apart


class ConstantPredictions(Rule):
    """A classifier answers the same class for everything.

    ## What it does
    While a model is watched: counts which classes it answers, in the training steps looked at and in the passes
    without gradients, as an evaluation makes them. Speaks up if over the second half of the run it is one class
    only; or if it is one class in evaluation, while in training the answers vary.

    ## Why it is bad
    The model has learned which class is the commonest and nothing about the examples; accuracy is the share of
    that class, which may look good. If only the evaluation is so, the model behaves differently there: most often
    the statistics that batch norm kept are not those of the data, or the evaluation prepares its inputs in another
    way. Where one class has nearly all the labels, the one answer may even be the most likely for each example:
    then it is a note, for the accuracy does not show that nothing else is ever found.

    ## Example
    ```python
    nn.BatchNorm1d(64, momentum=0.0001)     # its statistics never get to those of the data
    ```

    ## Instead
    ```python
    nn.BatchNorm1d(64)
    ```

    ## Thresholds
    At least 200 steps, 6 of them looked at in the second half, and 100 examples; no class has more than 80% of the
    labels (if one has, it is a note, once 10 examples of the others were looked at); the learning rate does not
    rise any more; and the model is not merely slow: had all steps gone the same way, they would have changed the
    weights by their own size. And the cross entropy is no lower than that of one and the same answer: where
    classes are uneven and hard to tell, the highest score may rightly be that of the commonest for all. All are
    ours. Where the course of the loss says more, `learning-rate-too-high` or `loss-plateau` speaks instead.

    An evaluation counts if it has 100 examples and its labels are known, as they are when a model is called with
    them: then it is a warning. Otherwise it takes two evaluations, and is a note, for their examples may all be of
    one class on purpose.

    ## Known problems
    Only scores (examples, classes) are seen, and only if the loss is seen to take them for logits.

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
        """Look at the answers over the second half of the run, and in the last evaluations."""
        if not answers.softmax_loss:
            raise NotApplicable("needs a classifier whose loss is seen to take its outputs for logits")
        late = answers.steps >= steps.total_steps / 2
        if steps.total_steps < STEPS or late.sum() < LOOKS:
            raise NotApplicable(
                f"needs {STEPS} steps, and {LOOKS} looks at the answers in the second half of them"
            )
        labels = answers.labels.sum(axis=0)
        if labels.sum() < EXAMPLES:
            raise NotApplicable(f"needs the labels of {EXAMPLES} examples")
        given = answers.answers[late].sum(axis=0)
        if labels.max() > COMMONEST * labels.sum():
            return self._of_the_commonest(steps, answers, updates, late)
        if (given > 0).sum() > 1:
            return self._in_evaluation(answers, given)
        _check_moved(steps, updates)
        if given.sum() < EXAMPLES or _knows_more(answers, late):
            return None
        if _told_already(steps, losses, updates, answers):
            return None
        answer, first = int(given.argmax()), int(answers.steps[late][0])
        share = labels[answer] / labels.sum()
        return self.found(
            f"From step {first:,} on the model answers class {answer} for every one of the {given.sum():,} "
            f"training examples looked at, while {share:.0%} of the labels are of that class. It has learned "
            "nothing about the examples.",
            fix=(
                "train on one batch of a few examples first: if these cannot be learned by heart, look at inputs, "
                "labels and activations; if they can, at the learning rate"
            ),
            evidence={"class": answer, "examples": int(given.sum()), "labels": labels.tolist()},
            step=first,
        )

    def _of_the_commonest(
        self, steps: StepHistory, answers: PredictionFacts, updates: UpdateHistory | None, late: Array
    ) -> Finding | None:
        """Look whether a model whose examples are nearly all of one class never answers another."""
        given, labels, step = answers.answers[late].sum(axis=0), answers.labels[late].sum(axis=0), None
        answer = int(labels.argmax())
        known = np.flatnonzero(answers.evaluation_labels.sum(axis=1) >= EXAMPLES)
        if known.size and given[answer] == given.sum():
            step = int(answers.evaluation_steps[known[-1]])
            given, labels = answers.evaluation_answers[known[-1]], answers.evaluation_labels[known[-1]]
        missed = int(labels.sum() - labels[answer])
        if given[answer] < given.sum() or missed < MISSED:
            return None
        tells_apart = _knows_more(answers, late)
        if not tells_apart:
            _check_moved(steps, updates)
        first = int(answers.steps[late][0])
        where = f"From step {first:,} on" if step is None else f"In the evaluation after {step:,} steps"
        return self.found(
            f"{where} the model answers class {answer} for all {given.sum():,} examples looked at. This is right "
            f"for {labels[answer] / labels.sum():.0%} of them, which looks like a good accuracy, and finds none "
            f"of the {missed:,} others."
            + (" Its scores do tell examples apart, but another class never has the highest." * tells_apart),
            fix=(
                "judge by balanced accuracy or by the recall of each class; to find the rare ones, weigh the "
                "classes in the loss, draw rare rows more often, or answer the rare class from a lower score on"
            ),
            evidence={"class": answer, "examples": int(given.sum()), "labels": labels.tolist()},
            step=first if step is None else step,
            severity="note",
        )

    def _in_evaluation(self, answers: PredictionFacts, given: Array) -> Finding | None:
        """Look whether the last evaluations had one answer only, where training has several."""
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
        if known and labels.max() > COMMONEST * labels.sum():
            return None
        if not known and (large.size < 2 or answers.evaluation_answers[large[-2]][answer] < sizes[large[-2]]):
            return None
        step = int(answers.evaluation_steps[large[-1]])
        carry = (
            f", of which {labels[answer] / labels.sum():.0%} carry that label"
            if known
            else "; their labels are not known here"
        )
        return self.found(
            f"In the evaluation after {step:,} steps the model answers class {answer} for all {last.sum():,} "
            f"examples looked at{carry}. In training its answers vary: {given.max() / given.sum():.0%} of them "
            "are of the commonest class. So the model, or what it is given, differs between the two.",
            fix=(
                "evaluate on a training batch, in both modes: if only model.eval() has one answer, it is the "
                "statistics of batch norm; if both vary, compare how the evaluation prepares its inputs"
            ),
            evidence={"class": answer, "examples": int(last.sum()), "labels": labels.tolist()},
            step=step,
            severity="warning" if known else "note",
        )


def _check_moved(steps: StepHistory, updates: UpdateHistory | None) -> None:
    """Raise NotApplicable for a run that may merely be slow."""
    moved = update_size.moved(steps, updates)
    if update_size.warms_up(steps) or moved is None or moved < loss_plateau.MOVED:
        raise NotApplicable("needs a run whose weights have moved by their own size, at a rate that rises no more")


def _knows_more(answers: PredictionFacts, late: Array) -> bool:
    """Whether the scores tell examples apart, although the highest is always that of the same class."""
    sizes, losses = answers.labels[late].sum(axis=1), answers.cross_entropies[late]
    known = np.isfinite(losses) & (sizes > 0)
    shares = answers.labels[late].sum(axis=0) / max(1, sizes.sum())
    chance = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    # Scores that are the same for all examples cannot have less.
    return bool(known.any()) and float(np.average(losses[known], weights=sizes[known])) < SAME_FOR_ALL * chance


def _told_already(
    steps: StepHistory, losses: LossHistory | None, updates: UpdateHistory | None, answers: PredictionFacts
) -> bool:
    """Whether another rule has said why."""
    try:
        return loss_curve.worst_course(steps, losses, updates, answers, loss_plateau.STEPS) is not None
    except NotApplicable:
        return False
