"""What each rank notes while it trains, for a comparison with the others afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, ClassVar

from diagnostics.facts.frozen import frozen

from .replicas import Sample
from .stall import StalledRank


@frozen
class Iteration:
    """One iteration over a DataLoader, in which the rank trained.

    Attributes:
        batches: that it has given.
        ended: whether it ran out; False where the script left it, or is in it.
        dataset: number of the dataset, in the order in which this rank trained on them.
        optimizer: number of the optimizer that stepped meanwhile, likewise.
        size: rows of a subset, or those that a DistributedSampler shares out; None where neither is known.
        shuffled: seed and epoch of the DistributedSampler that draws the order from them; None for another
        sampler. part: checksum of a `Subset`'s indices, of which this rank gets a share; None for another dataset,
        or if the
            loader does not share it out between all ranks.
    """

    batches: int
    ended: bool
    dataset: int = 0
    optimizer: int = 0
    size: int | None = None
    shuffled: tuple[int, int] | None = None
    part: int | None = None


@frozen
class ClippedNorm:
    """A call of `clip_grad_norm_` on parameters that FSDP has sharded.

    Attributes:
        norm: that it found on this rank.
        limit: `max_norm`.
    """

    norm: float
    limit: float


@frozen
class RankNotes:
    """What one rank noted; plain values, so that JSON can hold it.

    Attributes:
        number: from 0.
        world: number of ranks.
        host: name of its machine.
        model: class of the model that it shares by DistributedDataParallel; empty if there is none.
        samples: of that model, see `ReplicaFacts`.
        by_hand: whether the script averages its gradients by `all_reduce`, without a wrapper.
        apart: whether it trains on its share of the rows, and nothing was seen that might average the replicas.
        iterations: over loaders, the first ones.
        batches: that loaders gave in all iterations in which it trained.
        backward_passes: that it has begun.
        joined: whether the script asked for uneven inputs, by `join()`.
        clipped: norms, by the number of optimizer steps before.
        exit_code: of the script.
        error: the exception that ended it; empty if none did.
        stalled: where it stood, if a stall ended it.
        began: when its script began, in seconds since the epoch, by the clock of its host; 0 if not known.
        ended: when its report was made; likewise.
    """

    described: ClassVar[str] = "what a rank notes of its loaders and its model"

    number: int
    world: int
    host: str = ""
    model: str = ""
    samples: Mapping[int, Sample] = field(default_factory=dict)
    by_hand: bool = False
    apart: bool = False
    iterations: tuple[Iteration, ...] = ()
    batches: int = 0
    backward_passes: int = 0
    joined: bool = False
    clipped: Mapping[int, ClippedNorm] = field(default_factory=dict)
    exit_code: int = 0
    error: str = ""
    stalled: StalledRank | None = None
    began: float = 0.0
    ended: float = 0.0

    @property
    def place(self) -> str:
        """Render as ``rank 1 (node-b)``."""
        return f"rank {self.number} ({self.host})" if self.host else f"rank {self.number}"

    def ran_beside(self, other: RankNotes) -> bool:
        """Whether both ran at the same time; False as well if that is not known."""
        return bool(self.began and other.began) and self.began < other.ended and other.began < self.ended

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; the values of a parameter are one text of numbers."""
        samples = {
            str(step): {**asdict(one), "weights": {name: _written(some) for name, some in one.weights.items()}}
            for step, one in self.samples.items()
        }
        return {**asdict(self), "samples": samples}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> RankNotes:
        """Read what `as_dict` has returned, also after a way through JSON.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        return cls(
            **{
                **written,
                "samples": {int(step): _sample(one) for step, one in written["samples"].items()},
                "iterations": tuple(
                    Iteration(**{**one, "shuffled": one["shuffled"] and tuple(one["shuffled"])})
                    for one in written["iterations"]
                ),
                "stalled": written["stalled"] and StalledRank.from_dict(written["stalled"]),
                "clipped": {  # JSON has no NaN and no infinities: they are text
                    int(step): ClippedNorm(float(one["norm"]), float(one["limit"]))
                    for step, one in written["clipped"].items()
                },
            }
        )


@frozen
class JoinedNotes:
    """The notes of several ranks of one job.

    Attributes:
        ranks: by number.
    """

    described: ClassVar[str] = "the notes of several ranks"

    ranks: Mapping[int, RankNotes]


def _written(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.9g}" for value in values)  # all digits of a float32


def _sample(one: Mapping[str, Any]) -> Sample:
    weights = {name: tuple(float(value) for value in text.split()) for name, text in one["weights"].items()}
    drawn = {name: tuple(pair) for name, pair in one["drawn"].items()}
    return Sample(one["rows"], weights, drawn)
