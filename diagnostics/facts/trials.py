"""Facts about trials on copies: training on a few examples or one batch, calling the metric, making a step twice.

As in `facts.pipeline`, None always means "not known".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen

from .array import Array

Outcome = Literal["learned", "partly", "not learned", "not judged"]
"""partly: clearly better than a constant prediction when the steps were used up, and not yet right everywhere."""


@frozen
class OverfitFacts:
    """A copy of the model, trained on one batch over and over, with dropout off.

    Attributes:
        losses: the loss before each step, of the best of the runs tried.
        learning_rates: the rates tried, in order.
        distinct_inputs: number of examples in the batch that differ from each other.
        output_spread: standard deviation of the copy's prediction across examples, the largest over output
            units, divided by the predictions' root mean square; before the training or after, where it is larger.
            0: the same answer to everything, both times.
        symmetric: names of weights whose units were all alike when training began and still are.
        rescaled: whether the targets of a regression were brought to mean 0 and standard deviation 1 first,
            because at their own scale no rate that was tried got anywhere. `losses` are in the original unit.
    """

    described: ClassVar[str] = "a copy trained on one batch"

    losses: tuple[float, ...]
    learning_rates: tuple[float, ...]
    distinct_inputs: int
    output_spread: float | None
    symmetric: tuple[str, ...] = ()
    rescaled: bool = False


@frozen
class TrialFacts:
    """The same batch over and over, or a few in turn, trained on a copy with the user's optimizer, dropout off.

    Attributes:
        learning_rate: the user's, the largest over parameter groups.
        losses: the loss before each step.
        update_ratios: for each step the median over weights of |update| / |weight|, both L2 norms.
        better_rate: another learning rate, with the same optimizer, that did get the loss well below that of a
            constant prediction; None if none of those tried did, or none was tried because the user's did.
        better_losses: the loss before each step at that rate.
        warms_up: whether a schedule will start below this rate and raise it; None if not known.
        batches: how many batches took turns.
        constant_baseline_loss: the least loss of one answer for all examples of these batches; None: that of
            `LossFacts`.
    """

    described: ClassVar[str] = "a trial of the learning rate"

    learning_rate: float
    losses: tuple[float, ...]
    update_ratios: tuple[float, ...]
    better_rate: float | None = None
    better_losses: tuple[float, ...] = ()
    warms_up: bool | None = None
    batches: int = 1
    constant_baseline_loss: float | None = None


@frozen
class MetricFacts:
    """The user's metric function, asked twice about predictions that are all correct.

    Attributes:
        on_logits: what it returned when every prediction was a row of logits, highest at the true class: what
            the evaluation loop hands over. None if it raised.
        on_classes: what it returned when every prediction was the true class itself. None if it raised.
        error: what it raised on logits.
        answers: what these logits were, in a word.
        on_wrong: what it returned when every prediction was another class than the true one, where it judges each
            output by itself; empty elsewhere.
    """

    described: ClassVar[str] = "a metric"

    on_logits: Mapping[str, float] | None
    on_classes: Mapping[str, float] | None
    error: str | None = None
    answers: str = "logits"
    on_wrong: Mapping[str, float] = field(default_factory=dict)


@frozen
class ReproductionFacts:
    """One training step made twice on copies, from the same weights, rows and seeds.

    Attributes:
        compared: tensors compared: the batch, what each layer returned, the loss, the gradients.
        differing: how many of them were not equal, bit for bit.
        first: the first of these, in the order in which they are made; None if none differs.
        difference: the largest difference between two of its values; None if not known.
        largest: the largest absolute value in it; None if not known.
        unseeded: generators of the data or the model that were made without a seed. In the second step they stood
            elsewhere, as they would in another process.
    """

    described: ClassVar[str] = "a training step made twice"

    compared: int
    differing: int = 0
    first: str | None = None
    difference: float | None = None
    largest: float | None = None
    unseeded: int = 0


@frozen
class SubsetRun:
    """One copy, trained from where the user's model stands, with dropout off.

    Attributes:
        theirs: whether the user's optimizer was rebuilt for it; otherwise AdamW without weight decay.
        optimizer: class name.
        learning_rate: the largest over parameter groups.
        losses: the loss before each step.
        learned: whether the last of them was low enough.
        largest_update: the largest of the steps' medians over weights of |update| / |weight|.
        output_spread: see `OverfitFacts`.
        steps_kept: the steps whose answers were kept, rising, the last one among them.
        answers: float (steps kept, examples): of a classifier the probability of the right class, of a regression
            the first output; None if the loss is neither, or if targets were scaled.
        probabilities: float (steps kept, examples, classes), of a few examples and classes; otherwise None.
    """

    theirs: bool
    optimizer: str
    learning_rate: float
    losses: tuple[float, ...]
    learned: bool
    largest_update: float = 0.0
    output_spread: float | None = None
    steps_kept: tuple[int, ...] = ()
    answers: Array | None = None
    probabilities: Array | None = None

    @property
    def lowest(self) -> float:
        """The least finite loss; infinite if there is none."""
        return min((loss for loss in self.losses if math.isfinite(loss)), default=math.inf)


@frozen
class SubsetTrial:
    """All runs on the same few examples.

    Attributes:
        examples: how many.
        whole_batch: whether this is the batch that holds every label, not a part of it.
        outcome: of the best run.
        reason: why that is the outcome, where it is not ``learned``; else empty.
        baseline: the least loss of one constant prediction for these examples; None if not known.
        classifies: whether answers are probabilities of classes.
        distinct_labels: number of different targets among them.
        missing_labels: number of classes seen in the data that are not among them; None if not known.
        equal_inputs: number of examples whose inputs equal those of another one.
        contradictions: number of those whose target differs from that of the other.
        targets: float (examples,): class indices, or the first target of a regression; None if it is neither.
        runs: in order of time.
        seconds: that they took.
    """

    described: ClassVar[str] = "copies trained on a few examples"

    examples: int
    whole_batch: bool
    outcome: Outcome
    reason: str = ""
    baseline: float | None = None
    classifies: bool = False
    distinct_labels: int = 0
    missing_labels: int | None = None
    equal_inputs: int = 0
    contradictions: int = 0
    targets: Array | None = None
    runs: tuple[SubsetRun, ...] = ()
    seconds: float = 0.0

    @property
    def best(self) -> SubsetRun | None:
        """The run that learned, or that got the lowest loss; None if there was none."""
        return min(self.runs, key=lambda run: (not run.learned, run.lowest), default=None)

    @property
    def theirs(self) -> SubsetRun | None:
        """The run with the user's optimizer; None if there was none."""
        return next((run for run in self.runs if run.theirs), None)
