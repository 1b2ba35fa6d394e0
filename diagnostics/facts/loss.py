"""What a loss was given, and the parameters that it depends on: plain numbers, no framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen


@frozen
class LeafFacts:
    """Parameters that the first loss depends on, that require a gradient, and that no optimizer holds.

    Those that the model registers are left out: `OptimizerFacts.missing` lists them.

    Attributes:
        unregistered: sizes, in scalars, by path, such as ``layers[0].weight``: of modules and parameters that
            the model keeps in a list, tuple or dict of Python's, where `parameters()` does not find them.
        other_models: scalars by class name of modules that give the model its input, are in training mode, and
            whose weights are as they were initialised.
        heads: the same of modules that take the model's output, such as a loss with weights of its own.
        num_trained: scalars that the loss depends on and that an optimizer holds.
        vanished: scalars, in matrices, by class name of layers that the model makes within its forward pass and
            that exist no more when it is over.
        untracked: scalars by path of variables that a layer of Keras keeps where Keras does not find them, and
            that are as they were before the training.
    """

    described: ClassVar[str] = "the parameters that the loss depends on"

    unregistered: Mapping[str, int]
    other_models: Mapping[str, int]
    num_trained: int
    vanished: Mapping[str, int] = field(default_factory=dict)
    heads: Mapping[str, int] = field(default_factory=dict)
    untracked: Mapping[str, int] = field(default_factory=dict)


@frozen
class SignedTargets:
    """The targets of one batch under a loss that reads 1 and -1.

    Attributes:
        function: its name: ``cosine_embedding_loss``, ….
        size: numbers in them.
        ones: how many are 1.
        zeros: how many are 0.
    """

    described: ClassVar[str] = "a loss whose targets are 1 and -1"

    function: str
    size: int
    ones: int
    zeros: int


@frozen
class AlignedTargets:
    """The targets of one batch under connectionist temporal classification (CTC).

    Attributes:
        examples: whose targets are known.
        blank: the index that stands for no label.
        with_blank: examples whose target holds it.
        too_short: examples with fewer frames than their labels need: one each, and one more between equal ones.
        frames: of the shortest example.
        labels: of the longest target.
    """

    described: ClassVar[str] = "a loss of aligned sequences (CTC)"

    examples: int
    blank: int
    with_blank: int
    too_short: int
    frames: int
    labels: int


@frozen
class AlignedScores:
    """What connectionist temporal classification (CTC) takes for log-probabilities.

    Attributes:
        lowest: of the first rows of a batch.
        highest: likewise.
        made: ``log_probabilities`` if their exponentials add up to 1 over the classes of every frame,
            ``probabilities`` if they themselves do, else ``scores``.
    """

    described: ClassVar[str] = "a loss of aligned sequences (CTC)"

    lowest: float
    highest: float
    made: Literal["log_probabilities", "probabilities", "scores"]


@frozen
class LogRates:
    """The input of a Poisson loss that takes it for the logarithm of the rate.

    Attributes:
        made_by: the function that computed it: ``softplus``, ``linear``, …; None if not known.
        mean_target: of the batch.
    """

    described: ClassVar[str] = "a Poisson loss of logarithms"

    made_by: str | None
    mean_target: float


@frozen
class TripletMargin:
    """The margin of a loss of triplets, by which a negative is to be further away than a positive.

    Attributes:
        function: its name.
        margin: which it returns, as a mean, where both are equally far away.
    """

    described: ClassVar[str] = "a loss of triplets"

    function: str
    margin: float


@frozen
class ShareTargets:
    """Targets of cross entropy that are shares of the classes, shaped as the scores: (n, classes, ...).

    Attributes:
        shape: of both.
        one_by_class: share of the places whose targets add up to 1 over the class axis, the second.
        one_by_last: share of the places whose targets add up to 1 over the last axis.
        several: share of the places with more than one 1 over the class axis; 0 where other numbers than 0 and 1
            are there.
        symmetric: whether they are equal to their transpose, as of pairs within a batch.
    """

    described: ClassVar[str] = "a cross entropy of shares"

    shape: tuple[int, ...]
    one_by_class: float
    one_by_last: float
    several: float
    symmetric: bool


@frozen
class FlattenedPair:
    """Scores and labels of sequences, each flattened to one axis before the loss.

    Attributes:
        scores: their shape before: (a, b, classes).
        labels: theirs: (a, b), or (b, a) where the two do not belong together.
    """

    described: ClassVar[str] = "scores and labels of sequences that were flattened"

    scores: tuple[int, ...]
    labels: tuple[int, ...]


@frozen
class SelfPairs:
    """Scores (n, n) of a cross entropy, of each row of a batch with every row, itself among them.

    Attributes:
        rows: n.
        score: of a row with itself, the highest of its row in all of them.
        others: the share of rows whose target is another row.
    """

    described: ClassVar[str] = "scores of all pairs in a batch"

    rows: int
    score: float
    others: float


LossArguments = (
    SignedTargets
    | AlignedScores
    | AlignedTargets
    | LogRates
    | TripletMargin
    | ShareTargets
    | FlattenedPair
    | SelfPairs
)
"""What a call of a loss shows."""
