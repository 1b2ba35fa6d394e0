"""Facts about a training as a whole, known when it is over: plain numbers and NumPy arrays, no framework."""

from __future__ import annotations

import math
from typing import ClassVar

from diagnostics.facts.frozen import frozen

from .array import Array
from .loss_contracts import LossKind


@frozen
class SimpleFit:
    """What a fit of linear or radial functions to some rows predicts of rows that it was not given.

    Attributes:
        fitted: rows that it was given.
        predicted: other rows.
        constant_error: of these, with the best constant prediction: mean squared error, or of classes the share of
            wrong answers.
        error: of the fit, the same.
        linear: whether the linear one was the better one.
        of_classes: whether errors are shares of wrong answers.
        linear_error: of the linear fit; NaN if not known.
    """

    fitted: int
    predicted: int
    constant_error: float
    error: float
    linear: bool
    of_classes: bool
    linear_error: float = math.nan


@frozen
class OrderFit:
    """What fits to rows of tokens predict of other rows: from the counts of the tokens, and from their positions.

    Attributes:
        predicted: rows that the fits were not given.
        of_counts: error of the fit to how often each token is there.
        of_places: the least error of the fits to positions: to the token of each place, to the first
            place of each token, and to pairs of neighbours.
        of_classes: whether errors are shares of wrong answers, and not mean squares.
    """

    predicted: int
    of_counts: float
    of_places: float
    of_classes: bool


@frozen
class NumberedFit:
    """What fits predict of targets that are a few whole numbers: as classes, as numbers, and in other orders.

    Attributes:
        classes: different targets.
        fit: to the targets as classes.
        rounded: share of wrong answers on the same rows, of the best fit to the numbers, rounded.
        orders: random renumberings of the classes that were fitted as numbers, too.
        as_good: how many of these are predicted at least as well as the numbers are, relative to their variance.
    """

    classes: int
    fit: SimpleFit
    rounded: float
    orders: int
    as_good: int


@frozen
class BlankRows:
    """Rows of the training inputs that hold one value throughout, where others do not hold it.

    Attributes:
        rows: looked at.
        blank: how many of them are blank, all with the same value.
        value: of these.
        elsewhere: share of that value among the numbers of the other rows.
        different_targets: how many different targets the blank ones have.
    """

    rows: int
    blank: int
    value: float
    elsewhere: float
    different_targets: int


@frozen
class CopiedTarget:
    """The only number of a row of inputs that tells its target, each value of it another one, without exception.

    Attributes:
        column: its place in the row, counted from 0.
        columns: numbers in a row.
        rows: looked at.
        values: how many different targets they have.
        equal: whether it is the target itself; else a number for each class.
    """

    column: int
    columns: int
    rows: int
    values: int
    equal: bool


@frozen
class Sentinel:
    """A number that stands for a missing one in a column of inputs, far from all others.

    Attributes:
        column: its place in the row, counted from 0.
        value: as the model gets it.
        share: of the rows.
        apart: how far it is from the mean of the others, in their standard deviations.
    """

    column: int
    value: float
    share: float
    apart: float


@frozen
class TargetHistory:
    """The targets of m sampled steps, and what one constant prediction would have cost on them.

    Only where the loss of these steps is known to be the formula of its kind, of these targets and nothing else,
    and where the targets do not change their nature in the course of the run.

    Attributes:
        kind: of loss.
        steps: integers (m,), rising.
        losses: float64 (m,), of the model's answers.
        constant_losses: float64 (m,), of the same answer for every example: the mean of all targets.
        examples: in these steps, together.
        outputs: an example.
        fit: whether a simple fit learns these targets from the inputs; None if not tried, as where the model did.
        only_target: the value of the target, if there is one a row, and it is the same in all rows looked at; of
            several classes with an output each its number. None otherwise.
        blank: the blank rows among the inputs; None if there are none, or the inputs are not known.
        copied: the number in the inputs that tells the target; None if there is none, or several.
        rows_standardised: whether each row of inputs has a mean of 0 and a standard deviation of 1 by itself.
        sentinel: a number in the inputs that stands for missing ones; None if there is none.
        order: what the order of the tokens tells of these targets; None if not tried, as without tokens.
        numbered: fits to the targets as classes, where they are a few whole numbers; None if they are not.
    """

    described: ClassVar[str] = "the targets of the sampled steps"

    kind: LossKind
    steps: Array
    losses: Array
    constant_losses: Array
    examples: int
    outputs: int
    fit: SimpleFit | None = None
    only_target: float | None = None
    blank: BlankRows | None = None
    copied: CopiedTarget | None = None
    rows_standardised: bool = False
    sentinel: Sentinel | None = None
    order: OrderFit | None = None
    numbered: NumberedFit | None = None


@frozen
class NegatedLoss:
    """A training that makes the loss of a known formula large: it minimises its negative, or maximises it.

    Attributes:
        kind: of loss.
        steps: in which the formula was found.
        first: the value of the formula in the first of them.
        last: in the last.
        constant: of the mean target for every example, in the first.
        one_target: whether all targets are equal.
        maximized: whether the optimizer maximises; otherwise the loss has a minus.
    """

    described: ClassVar[str] = "a loss whose formula is known"

    kind: LossKind
    steps: int
    first: float
    last: float
    constant: float
    one_target: bool
    maximized: bool


@frozen
class OpposedGradients:
    """In how many sampled steps the training moves the model's output away from the batch's targets.

    Attributes:
        of_masks: whether the targets are 0 and 1, with many numbers a row; otherwise the steps counted are those
            whose gradient is a multiple of the negative error.
        steps: looked at.
        opposed: of these.
        maximized: whether the optimizer maximises; otherwise the loss rises as the output nears the targets.
    """

    described: ClassVar[str] = "targets beside the model's inputs in the loader's batch"

    of_masks: bool
    steps: int
    opposed: int
    maximized: bool


@frozen
class AccuracyHistory:
    """The share of right answers in e epochs, as the framework counts them, and in the evaluation after each.

    Attributes:
        name: of the metric: ``accuracy``.
        steps: integers (e,), optimizer steps made before each evaluation, rising.
        training: float64 (e,), 0 to 1, over the batches of the epoch, while the model learned.
        evaluation: float64 (e,), 0 to 1.
        labels: integers (classes,), how many of the evaluation rows that were read carry which label.
    """

    described: ClassVar[str] = "the accuracy of epochs and of their evaluations"

    name: str
    steps: Array
    training: Array
    evaluation: Array
    labels: Array


@frozen
class OutputScore:
    """How far the trained model's answers of one output are from the targets of some training rows.

    Attributes:
        name: of the output.
        kind: of its loss.
        rows: that were asked.
        error: in the unit of the loss, without penalties: of the answers.
        constant_error: of the best constant prediction.
        answers: the least and the greatest.
        target_mean: of all numbers of the targets.
        target_spread: their standard deviation.
        fit: whether a simple fit learns these targets from the inputs; None if not tried.
        weight: of this loss in the sum of all.
    """

    name: str
    kind: LossKind
    rows: int
    error: float
    constant_error: float
    answers: tuple[float, float]
    target_mean: float
    target_spread: float
    fit: SimpleFit | None = None
    weight: float = 1.0


@frozen
class FinalAnswers:
    """What the model of a script answers to training rows after its training, where the loss does not tell it.

    Attributes:
        outputs: with a loss whose constant prediction is known.
        steps: of the optimizer.
        keeps_statistics: whether the model has batch norm, whose statistics take hundreds of steps.
    """

    described: ClassVar[str] = "the trained model's predictions for training rows"

    outputs: tuple[OutputScore, ...]
    steps: int
    keeps_statistics: bool = False


@frozen
class RowLedger:
    """The rows of a training: which ones the batches had, and with which targets.

    Only rows that do not repeat by nature, and as far as they were compared; numbers are 0 where they were not.

    Attributes:
        rows: of inputs that came more than once in the run.
        compared: times that one came again, and was compared with its first time.
        changed: of these, how often it had another target.
        of_others: of those, how often the target had been that of another row.
        chance: share that would have changed if the targets were dealt out to the rows again.
        apart: mean square of the changes, as a share of what it would be if they were dealt out again.
        nearby: mean square of the difference between the targets of a row and of its nearest one in the batch,
            as a share of that between any two rows; about 1 where targets have nothing to do with their rows, 0
            if no batch had three rows.
        drawn: rows of the batches of sampled steps.
        distinct: how many of them differ from each other.
        steps: that they are from.
        moved: rows of the first batch whose inputs are at another place than their example.
        unpaired: of the first batch, those with a target that is another one than that of their example.
        collated: whether the collator moved them, and not the script after the loader.
        in_batch: rows of the first batch.
    """

    described: ClassVar[str] = "the order of the rows in the first batch"

    rows: int = 0
    compared: int = 0
    changed: int = 0
    of_others: int = 0
    chance: float = 0.0
    apart: float = 0.0
    nearby: float = 0.0
    drawn: int = 0
    distinct: int = 0
    steps: int = 0
    moved: int = 0
    unpaired: int = 0
    collated: bool = False
    in_batch: int = 0


@frozen
class Verdicts:
    """What the other rules said of this training.

    Attributes:
        found: names of the rules with a finding of severity error or warning.
        judged: names of all rules that had their evidence.
        complete: whether the training ended by itself: no limit, no exception and no Ctrl-C cut it off.
        trained_alone: whether no other training of the script ran at the same time.
    """

    described: ClassVar[str] = "the other rules' verdicts"

    found: frozenset[str]
    judged: frozenset[str]
    complete: bool = True
    trained_alone: bool = True
