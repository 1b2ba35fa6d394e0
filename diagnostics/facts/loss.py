"""What a loss was given, and the parameters that it depends on: plain numbers, no framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

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
class BootstrappedTarget:
    """A squared error of chosen answers, whose target is computed by the same weights and differentiated, too.

    Attributes:
        best: whether the target is made of the best answer of each row, and not of a chosen one.
        weights: parameters that both sides depend on.
    """

    described: ClassVar[str] = "a target that the model computes"

    best: bool
    weights: int


@frozen
class CosineScores:
    """Scores of a cross entropy that are cosines, of vectors of length 1, times a constant.

    Attributes:
        classes: scores that are compared with each other.
        factor: that multiplies the cosines.
    """

    described: ClassVar[str] = "scores that are cosines times a constant"

    classes: int
    factor: float


LossArguments = BootstrappedTarget | CosineScores
"""What a call of a loss shows."""


@frozen
class ScrambledView:
    """A view that gives numbers other places along the axes, where the order of the axes was to change.

    Attributes:
        shape: before.
        made: after.
    """

    described: ClassVar[str] = "the views in the graph of the first loss"

    shape: tuple[int, ...]
    made: tuple[int, ...]


@frozen
class RawOverlap:
    """A loss that divides a sum of outputs by another, as an overlap does, with outputs that may be negative.

    Attributes:
        shape: of the outputs.
    """

    described: ClassVar[str] = "ratios of sums in the graph of the first loss"

    shape: tuple[int, ...]


@frozen
class TracedDifference:
    """A difference within a loss, between an answer of the model and its target.

    Only where the two have different ranks, so that each is compared with all others of the batch.

    Attributes:
        prediction: its shape: ``(None, 1)`` or ``(None,)``, None for the size of the batch if it is not fixed.
        target: its shape, the other one.
        traced: whether it was read in a step that TensorFlow traced, and not in the graph of a step.
    """

    described: ClassVar[str] = "the shapes within a traced loss"

    prediction: tuple[int | None, ...]
    target: tuple[int | None, ...]
    traced: bool = True


@frozen
class StretchedProduct:
    """A product within a loss, of a value for each example and a number for each example, that makes a square.

    Only where nothing but the mean or the sum of the square is used.

    Attributes:
        values: the shape of what is differentiated, (n,) or (n, 1).
        numbers: the shape of what it is multiplied by, the other one.
    """

    described: ClassVar[str] = "the shapes of the factors within the first loss"

    values: tuple[int, ...]
    numbers: tuple[int, ...]


@frozen
class IgnoredGradient:
    """An operation of the script's own whose backward never reads the gradient that it is given.

    Attributes:
        function: the class.
        given: what its backward calls that gradient.
        shape: of the operation's output.
    """

    described: ClassVar[str] = "the operations of the script's own in the first loss"

    function: str
    given: tuple[str, ...]
    shape: tuple[int, ...]
