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
