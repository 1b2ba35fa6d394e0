"""Facts about the copies of one model on several ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from diagnostics.facts.frozen import frozen
from diagnostics.facts.where import Where


@frozen
class WrapperFacts:
    """A model in DistributedDataParallel, as one rank calls it.

    Attributes:
        model: class of the module inside.
        world: number of ranks that share it.
        wrapped: forward passes with gradients that went through the wrapper.
        bare: those that called the module inside by itself.
        steps: of the optimizer that holds the module's first trainable parameter.
        added: names of parameters that an optimizer trains, and that the module did not have when it was wrapped.
        where: a line that called the module by itself; None if none did.
        collectives: that the script has made, other than the wrapper's; None if they were not counted.
        rows: of a batch on one rank, the most that were seen; None if it is not known.
        local_norms: names of the batch norm layers that use the statistics of one rank's rows in training.
    """

    described: ClassVar[str] = "a model in DistributedDataParallel on several ranks"

    model: str
    world: int
    wrapped: int
    bare: int
    steps: int
    added: tuple[str, ...] = ()
    where: Where | None = None
    collectives: int | None = None
    rows: int | None = None
    local_norms: tuple[str, ...] = ()


@frozen
class Sample:
    """What one rank had at the start of a forward pass through the wrapper.

    Attributes:
        rows: checksum of the tensors of the input; None if there are none, or they hold too little to compare.
        weights: by parameter, some of its values, the same places on every rank.
        drawn: by random generator (``torch``, ``cuda``, ``numpy``, ``random``), checksums of its state at the end
        of
            this forward pass and at the start of the next, where random numbers were drawn between the two.
    """

    rows: int | None
    weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    drawn: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@frozen
class ReplicaFacts:
    """What the ranks of one host had after the same optimizer steps.

    Attributes:
        model: class of the module inside the wrapper.
        ranks: by rank, the samples of the first forward pass with gradients after so many optimizer steps.
        by_hand: whether the script averages the gradients by `all_reduce`, without a wrapper.
        apart: whether each rank trains on its share of the rows, and nothing averages anything.
    """

    described: ClassVar[str] = "what several ranks had at the same steps"

    model: str
    ranks: Mapping[int, Mapping[int, Sample]]
    by_hand: bool = False
    apart: bool = False

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of steps after which every rank kept a sample, in order."""
        common = set.intersection(*(set(samples) for samples in self.ranks.values())) if self.ranks else set()
        return tuple(sorted(common))
