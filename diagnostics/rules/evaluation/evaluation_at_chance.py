"""See `EvaluationAtChance`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import AccuracyHistory, SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.inputs import InputFacts, InputSample
from diagnostics.facts.layers import BatchNormFacts
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.facts.training import PredictionFacts, StepHistory
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.shared.input_shift import distance, moments
from diagnostics.rules.shared.statistics_lag import PATIENCE, lag
from diagnostics.text.join import listed

EXAMPLES = 100  # in an evaluation
TRAINED = 32  # examples in training batches sampled late in the run: an agreement of 0.5 is then not by chance
LEARNED = 0.5  # agreement with the labels in training: half of the possible gain over chance
LEARNED_IN_EPOCHS = 0.4  # the same of a logged accuracy, a mean over epochs in which the weights changed
CHANCE = 0.2  # agreement that evaluations must stay below, with two standard errors added
ERRORS = 2.0  # standard errors; what is further above chance was learned
WITHIN = 3.0  # standard errors: chance explains a smaller difference, also in the last of many evaluations
BELOW = 5.0  # standard errors below chance, for three or more classes: predictions contradict the labels
MIXED = 4.0  # standard deviations between passes: beyond it, they belong to several evaluations
BALANCED = 1.5  # of an equal share: chance is known without the predictions only if no class has more
MOST_FREQUENT = 0.8  # share of the labels of an evaluation: beyond it, they may be placeholders
CLASSES = 3  # least number whose numbering is judged: with two, predictions that are all wrong may be intended
MIN_RENUMBERED = 0.6  # share of the examples that another numbering of the classes would make right
MORE = 0.7  # of these may be right as they are: with few classes, some keep their numbers
UNSEEN = 0.5  # of an evaluation's labels, from classes that no training example has
BY_CHANCE = 0.1  # of its labels, from classes that so many training examples may miss by chance
SHOWN = 6  # of these classes are named
LEARNABLE = 0.7  # of the constant prediction's error, left by a fit on held-out rows

BATCH_NORM: Final = re.compile(r"(?:^|_|/)(?:batch_?norm|bn)", re.IGNORECASE)  # in the name of a layer of Keras

CAUSES: Final = (
    "evaluation-mismatch",
    "train-mode-evaluation",
    "constant-predictions",
    "weights-kept-by-reference",
    "examples-mixed",
)
"""Rules whose findings explain an evaluation at chance."""

SPLIT: Final = (
    "train_test_split(x, y, stratify=y)  # every class in both splits",
    "shuffle the indices before you split them: np.random.shuffle(indices)",
)

OWN_ROWS: Final = (
    "print ten training rows with their labels, as passed to the model, and check that they match",
    "shuffle inputs and labels in the same order: order = rng.permutation(len(x)); x, y = x[order], y[order]",
)
ONE_LIST: Final = "number the classes in both datasets from the same list, such as train.classes or class_to_idx"
CONTRARY: Final = (
    "The predictions are worse than chance: either the classes are numbered differently in the evaluation, or "
    "the rows were split without shuffling and the classes of the evaluation rows are missing from the training "
    "rows."
)

EXCLUDES: Final = {
    "evaluation-mismatch": "the evaluation inputs have the same scale as the training inputs",
    "train-mode-evaluation": "the model is evaluated in evaluation mode",
    "leaked-evaluation-rows": "no training rows are among the evaluation rows",
    "repeated-batch": "the training batches differ from each other",
}


class EvaluationAtChance(Rule):
    """The model learned its training examples, but its evaluation is no better than chance.

    ## What it does
    Compares the predicted classes with the labels, in training and in each evaluation, and measures their
    agreement beyond chance (Cohen's kappa). If the agreement in evaluation is no better than chance, the rule
    checks whether renumbering the classes helps, whether training and evaluation inputs look alike, and whether a
    linear or RBF (radial basis function) model fitted to some training rows predicts the others.

    ## Why it is bad
    Even an overfitted model is usually better than chance. An evaluation at chance level has four common causes:

    - The labels are in a different order from their rows, or the classes are numbered differently.
    - The evaluation inputs are prepared differently from the training inputs.
    - The rows were sorted by class when they were split, so the evaluation contains classes that are not in the
      training set.
    - The model learned nothing that generalises to new examples.

    ## Example
    ```python
    train = ImageFolder("data/train")       # cat, dog, fox
    test = MyTestSet("data/test", classes=["dog", "fox", "cat"])
    ```

    ## Instead
    ```python
    train = ImageFolder("data/train")
    test = MyTestSet("data/test", classes=train.classes)
    ```

    ## Thresholds
    At least 32 training examples and 100 evaluation examples must have known labels. The training examples are
    taken from the last quarter of training (or, if it has too few, from the second half), and their agreement must
    be at least 0.5. In every evaluation after training began, the agreement must be at least two standard errors
    below 0.2. No class may have more than 80% of the evaluation's labels.

    A wrong numbering of the classes is reported even if the evaluation is better than chance. There must be at
    least three classes, and renumbering them must raise the accuracy to at least 60%. The accuracy without
    renumbering must be at most 70% of the accuracy with it.

    Classes count as unseen if at least half of the evaluation labels belong to them, but no sampled training
    example does. Chance must not explain this: a random training sample of the same size would be expected to miss
    classes with at most 10% of the evaluation labels in total.

    The finding is a warning if it names unseen classes. Otherwise, it is a note in three cases, of which only the
    third applies to a wrong numbering:

    - In the last evaluation, the agreement differs from chance by more than three standard errors.
    - The evaluation inputs do not look like the training inputs.
    - The run has fewer than 100 steps, and the running statistics of batch norm lag behind the weights, or might
      (the lag was not measured).

    For Keras' `fit`, the logged accuracy is used if there is `validation_data` or a `validation_split`, and no
    class has more than 1.5 times an equal share of the labels. The agreement in the last quarter of the epochs
    must then be at least 0.4. With three or more classes, the finding is always a warning if the number of correct
    predictions is more than five standard errors below chance.

    ## Known problems
    Random labels, which a demonstration may use on purpose, are reported as a note if the source shows that the
    script draws them and passes them only to a dataset or to `fit`. Otherwise they are reported as a warning.
    Evaluations on adversarial examples are reported as a note. The labels of an evaluation are known only if the
    script computes a cross entropy there, passes them to the model, or draws them together with the inputs from a
    PyTorch `DataLoader`.

    ## Sources
    Zhang et al., "Understanding deep learning requires rethinking generalization" (2017), on labels that can only
    be memorised; Cohen, "A Coefficient of Agreement for Nominal Scales" (1960); khanrc/pt.darts, issue 24, on rows
    that were split in order.
    """

    severity = "warning"
    causes = ("overfitting",)

    @check
    def from_answers(
        self,
        steps: StepHistory,
        answers: PredictionFacts,
        verdicts: Verdicts,
        targets: TargetHistory | None = None,
        inputs: InputFacts | None = None,
        norms: BatchNormFacts | None = None,
        dependence: DependenceFacts | None = None,
    ) -> Finding | None:
        """Compare the agreement of predictions and labels in training and in evaluation."""
        if not answers.softmax_loss:
            raise NotApplicable("needs a classifier whose loss is known to expect logits")
        if answers.evaluation_right is None or (
            answers.evaluation_answers.any() and not answers.evaluation_labels.any()
        ):
            raise NotApplicable("needs an evaluation that computes the loss")
        learned = next((one for one in _late(answers, steps.total_steps) if one.examples >= TRAINED), None)
        evaluations = [
            (int(step), _Agreement.of(given, labels, right))
            for step, given, labels, right in zip(
                answers.evaluation_steps,
                answers.evaluation_answers,
                answers.evaluation_labels,
                answers.evaluation_right,
                strict=True,
            )
            if step and labels.sum() >= EXAMPLES and labels.max() <= MOST_FREQUENT * labels.sum()
        ]
        if learned is None or not evaluations:
            raise NotApplicable(
                f"needs the labels of at least {TRAINED} training examples and {EXAMPLES} evaluation examples"
            )
        if learned.kappa < LEARNED:
            return None
        renumbered = _renumbered(answers.last_confusion)
        if renumbered is None and any(one.kappa + ERRORS * one.error > CHANCE for _, one in evaluations):
            return None
        if answers.evaluation_spread is not None and (answers.evaluation_spread > MIXED).any():
            return None
        if verdicts.found.intersection(CAUSES):
            return None
        step, last = evaluations[-1]
        fit = None if targets is None else targets.fit
        alike = _alike(inputs)
        unseen = _unseen(answers)
        lags = lag(norms is not None, dependence, steps.total_steps)
        certain = last.is_by_chance and alike is not False
        reason = _told(unseen, answers) or lags or _reason(renumbered, fit, alike, last)
        return self.found(
            f"Training accuracy is {learned.right / learned.examples:.0%}, but evaluation accuracy after "
            f"{step:,} steps is only {last.right / last.examples:.0%} on {last.examples:,} examples (chance is "
            f"{last.by_chance:.0%}). {reason} {_differential(verdicts)}".rstrip(),
            fix=SPLIT if unseen else PATIENCE if lags else _experiments(renumbered, fit),
            severity=None if unseen or (not lags and (renumbered is not None or certain)) else "note",
            evidence={
                "training_accuracy": learned.right / learned.examples,
                "training_agreement": learned.kappa,
                "evaluation_accuracy": last.right / last.examples,
                "evaluation_agreement": last.kappa,
                "evaluation_examples": last.examples,
                "by_chance": last.by_chance,
                "other_numbering": renumbered,
                "classes_unseen_in_training": list(unseen),
                "inputs_alike": alike,
                "fit_error": None if fit is None else fit.error,
                "fit_constant_error": None if fit is None else fit.constant_error,
            },
            step=step,
        )

    @check
    def from_epochs(
        self,
        accuracy: AccuracyHistory,
        model: ModelFacts,
        verdicts: Verdicts,
        targets: TargetHistory | None = None,
        inputs: InputFacts | None = None,
        dependence: DependenceFacts | None = None,
    ) -> Finding | None:
        """Compare the accuracy that is logged in training and in evaluation."""
        labels = accuracy.labels.astype(np.float64)
        count, classes = int(labels.sum()), int((labels > 0).sum())
        if count < EXAMPLES or classes < 2 or labels.max() > BALANCED / classes * count:
            raise NotApplicable(
                f"needs the labels of at least {EXAMPLES} evaluation rows, with roughly balanced classes"
            )
        by_chance = float(((labels / count) ** 2).sum())
        late = accuracy.training[3 * len(accuracy.training) // 4 :]
        learned = _Agreement(count, float(late.mean()) * count, by_chance)
        evaluations = [_Agreement(count, float(share) * count, by_chance) for share in accuracy.evaluation]
        if learned.kappa < LEARNED_IN_EPOCHS:
            return None
        if any(one.kappa + ERRORS * one.error > CHANCE for one in evaluations):
            return None
        if verdicts.found.intersection(CAUSES):
            return None
        last, step = evaluations[-1], int(accuracy.steps[-1])
        fit, alike = None if targets is None else targets.fit, _alike(inputs)
        contrary = classes >= CLASSES and last.kappa < -BELOW * last.error
        batch_norm = any(BATCH_NORM.search(name) for name in model.mode_dependent_layers)
        lags = None if contrary else lag(batch_norm, dependence, step)
        reason = CONTRARY if contrary else lags or _reason(None, fit, alike, last)
        return self.found(
            f"Training {accuracy.name} is {late.mean():.0%}, but evaluation {accuracy.name} after {step:,} steps "
            f"is {accuracy.evaluation[-1]:.0%} (chance is {by_chance:.0%}). "
            f"{reason} {_differential(verdicts)}".rstrip(),
            fix=(ONE_LIST, *SPLIT) if contrary else PATIENCE if lags else _experiments(None, fit),
            severity=None if contrary or (not lags and last.is_by_chance and alike is not False) else "note",
            evidence={
                "training_accuracy": float(late.mean()),
                "evaluation_accuracy": float(accuracy.evaluation[-1]),
                "evaluation_examples": count,
                "by_chance": by_chance,
                "inputs_alike": alike,
                "fit_error": None if fit is None else fit.error,
                "fit_constant_error": None if fit is None else fit.constant_error,
            },
            step=step,
        )

    def intended(self, finding: Finding, written: WrittenPatterns) -> str:
        """Return where the script draws the labels at random, if nothing else is made of them."""
        labels = written.first("drawn_labels")
        if labels is None:
            return ""
        return (
            f"The script draws these labels at random, by `{labels.names[1]}` in line {labels.where.line}, so a "
            "model can only memorise them."
        )


class _Agreement:
    """Agreement of predictions with labels, and the agreement expected by chance; shares from 0 to 1."""

    def __init__(self, examples: int, right: float, by_chance: float) -> None:
        self.examples, self.right, self.by_chance = examples, right, by_chance
        left = max(1 - by_chance, 1e-9)
        self.kappa = (right / examples - by_chance) / left if examples else 0.0
        self.error = math.sqrt(by_chance * (1 - by_chance) / examples) / left if examples else math.inf

    @classmethod
    def of(cls, answers: Array, labels: Array, right: int) -> _Agreement:
        """Compute the agreement from counts (classes,) of predictions and labels."""
        examples = int(labels.sum())
        by_chance = float(answers @ labels) / max(1, int(answers.sum())) / max(1, examples)
        return cls(examples, int(right), by_chance)

    @property
    def is_below(self) -> bool:
        """Return whether fewer are right than by chance."""
        return self.kappa < -WITHIN * self.error

    @property
    def is_by_chance(self) -> bool:
        """Return whether chance explains how many are right."""
        return abs(self.kappa) <= WITHIN * self.error


def _late(answers: PredictionFacts, total: int) -> Iterator[_Agreement]:
    """Yield the agreement in the last quarter of a run of so many steps, then in its second half."""
    for begins in (0.75 * total, 0.5 * total):
        late = answers.steps >= begins
        yield _Agreement.of(answers.answers[late].sum(0), answers.labels[late].sum(0), answers.right[late].sum())


def _unseen(answers: PredictionFacts) -> tuple[int, ...]:
    """Return the classes of an evaluation that no training example has, if they have most of its labels."""
    known = np.flatnonzero(answers.evaluation_labels.sum(axis=1) >= EXAMPLES)
    if not known.size:
        return ()
    last, new = answers.evaluation_labels[known[-1]], answers.labels.sum(axis=0) == 0
    share = last / last.sum()
    missed = share * (1 - share) ** int(answers.labels.sum())  # by chance: many classes, few examples
    if share[new].sum() < UNSEEN or missed.sum() > BY_CHANCE:
        return ()
    return tuple(int(number) for number in np.flatnonzero(new & (last > 0)))


def _told(unseen: tuple[int, ...], answers: PredictionFacts) -> str:
    """Name the classes that training never showed; empty if there are none."""
    if not unseen:
        return ""
    classes = listed([str(number) for number in unseen], "or", most=SHOWN)
    return (
        f"None of the {int(answers.labels.sum()):,} sampled training examples belongs to class "
        f"{classes}, but most evaluation rows do: the rows were split without shuffling."
    )


def _renumbered(confusion: Array | None) -> list[int] | None:
    """Return the predicted class for each label, if another numbering makes the predictions right."""
    if confusion is None:
        return None
    there = np.flatnonzero(confusion.sum(axis=1))
    if len(there) < CLASSES:
        return None
    numbering = np.full(len(confusion), -1)
    left = confusion.astype(np.float64)
    for _ in there:  # the most frequent pair first; each class is assigned once
        label, answer = np.unravel_index(left.argmax(), left.shape)
        if left[label, answer] <= 0:
            return None
        numbering[label] = answer
        left[label], left[:, answer] = -1, -1
    right, otherwise = (int(confusion[there, column].sum()) for column in (there, numbering[there]))
    if (
        (numbering[there] == there).all()
        or otherwise < MIN_RENUMBERED * confusion.sum()
        or right > MORE * otherwise
    ):
        return None
    return [int(number) for number in numbering]


def _alike(inputs: InputFacts | None) -> bool | None:
    """Return whether the inputs of both sides look alike; None if not known."""
    if inputs is None or not inputs.training:
        return None
    pairs = [
        (sample, inputs.evaluation[name]) for name, sample in inputs.training.items() if name in inputs.evaluation
    ]
    close = [_are_close(one, other) for one, other in pairs]
    return None if None in close or not close else all(close)


def _are_close(one: InputSample, other: InputSample) -> bool | None:
    if one.batches[0].shape[1] != other.batches[0].shape[1]:
        return False
    apart = distance(moments(one.numbers()), moments(other.numbers()))
    return None if apart is None else apart.is_close()


def _is_learnable(fit: SimpleFit | None) -> bool:
    return fit is not None and fit.error <= LEARNABLE * fit.constant_error


def _reason(renumbered: list[int] | None, fit: SimpleFit | None, alike: bool | None, last: _Agreement) -> str:
    if renumbered is not None:
        moved = [f"{label} as {given}" for label, given in enumerate(renumbered) if given not in (-1, label)]
        answered = listed(moved, most=4)
        return f"The classes are numbered differently in the evaluation: the model predicts label {answered}."
    if fit is None:
        return "It is unknown whether the training data has a signal that generalises."
    kind = "linear" if fit.linear else "radial-basis"
    if not _is_learnable(fit):
        return (
            f"Neither a linear nor a radial-basis model fitted to {fit.fitted} training rows can predict the "
            f"labels of {fit.predicted} others, so the model has only memorised its training examples. Either the "
            "labels belong to other rows, as when only the inputs were shuffled, or they are not predictable from "
            "the inputs."
        )
    start = (
        f"The training data has a signal that generalises: a {kind} model fitted to {fit.fitted} training rows "
        f"has {fit.error / fit.constant_error:.0%} of the error of a constant prediction on {fit.predicted} "
        "other rows."
    )
    if last.is_below:
        return f"{start} Evaluation accuracy is below chance, as on a test set designed to mislead the model."
    if alike:
        return (
            f"{start} The evaluation inputs look like the training inputs, so the evaluation labels may be "
            "misaligned with the rows."
        )
    return (
        f"{start} The evaluation inputs {'differ' if alike is False else 'may differ'} from the training inputs."
    )


def _differential(verdicts: Verdicts) -> str:
    out = [text for rule, text in EXCLUDES.items() if rule in verdicts.judged - verdicts.found]
    return f"Checked and fine: {'; '.join(out)}." if out else ""


def _experiments(renumbered: list[int] | None, fit: SimpleFit | None) -> tuple[str, ...]:
    if renumbered is not None:
        return (ONE_LIST,)
    rows = "print ten evaluation rows with their labels, as passed to the model, and check that they match"
    same = (
        "run the evaluation function on the training rows: if the result is at chance there too, the function "
        "is at fault"
    )
    if fit is not None and not _is_learnable(fit):
        return OWN_ROWS
    return (rows, same) if _is_learnable(fit) else (same, rows)
