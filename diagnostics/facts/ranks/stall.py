"""Facts about ranks whose steps do not end: where each of them stands."""

from __future__ import annotations

from dataclasses import dataclass

from diagnostics.facts.where import Where


@dataclass(frozen=True)
class StalledRank:
    """Where one rank has stood for a while.

    Attributes:
        number: from 0.
        host: name of its machine.
        pid: process.
        steps: optimizer steps that it has ended.
        idle: seconds in which it ended no step, made no collective, and its main thread did not move.
        made: collectives that it has made, with the one that it waits in; without those of C++, such as the
            all-reduces of DistributedDataParallel.
        collective: that its main thread is in: ``all_reduce``; ``backward`` for a backward pass, in which
            DistributedDataParallel waits; empty if in none.
        group: ranks of the collective's process group; empty for all, or if it is in none.
        shapes: of the collective's tensors: ``float32 [128, 10]``.
        where: the innermost line of the user's code in the main thread; None if there is none.
        code: of that line.
        inside: the innermost function that runs there: ``torch/serialization.py:944 in save``.
        threads: the innermost lines of other threads, as ``name: file:line in function``.
    """

    number: int
    host: str
    pid: int
    steps: int
    idle: float
    made: int = 0
    collective: str = ""
    group: tuple[int, ...] = ()
    shapes: tuple[str, ...] = ()
    where: Where | None = None
    code: str = ""
    inside: str = ""
    threads: tuple[str, ...] = ()


@dataclass(frozen=True)
class StallFacts:
    """Ranks that stand still at the same time.

    Attributes:
        world: number of ranks of the job.
        ranks: those that are known, in order: of this host, or of the folder that they write to.
        limit: seconds after which a rank counts as stalled.
    """

    described = "ranks whose steps do not end"

    world: int
    ranks: tuple[StalledRank, ...]
    limit: float
