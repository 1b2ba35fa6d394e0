"""Facts about trials on copies: training on one batch, calling the metric, making a step twice.

As in `facts.pipeline`, None always means "not known".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class TrialFacts:
    """The same batch over and over, or a few in turn, trained on a copy with the user's optimizer, dropout off.

    Attributes:
        learning_rate: the user's, the largest over parameter groups.
        losses: the loss before each step.
        update_ratios: for each step the median over weights of |update| / |weight|, both L2 norms.
        better_rate: another learning rate, with the same optimizer, that did get the loss well below that of a
            constant answer; None if none of those tried did, or none was tried because the user's did.
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


@dataclass(frozen=True)
class MetricFacts:
    """The user's metric function, asked twice about predictions that are all correct.

    Attributes:
        on_logits: what it returned when every prediction was a row of logits, highest at the true class: what
            the evaluation loop hands over. None if it raised.
        on_classes: what it returned when every prediction was the true class itself. None if it raised.
        error: what it raised on logits.
    """

    described: ClassVar[str] = "a metric"

    on_logits: Mapping[str, float] | None
    on_classes: Mapping[str, float] | None
    error: str | None = None


@dataclass(frozen=True)
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
