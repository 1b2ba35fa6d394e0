"""Facts about ranks whose steps do not end: where each of them stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diagnostics.facts.frozen import frozen
from diagnostics.facts.where import Where


@frozen
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
        epochs: batches of each iteration over a loader that has ended, and in which it trained.
        drawn: batches of the iteration that it is in; 0 if in none.
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
    epochs: tuple[int, ...] = ()
    drawn: int = 0

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> StalledRank:
        """Read what `dataclasses.asdict` has returned, also after a way through JSON.

        Raises:
            KeyError, TypeError: it is something else.
        """
        where = written["where"]
        listed = {name: tuple(written[name]) for name in ("group", "shapes", "threads", "epochs")}
        return cls(**{**written, **listed, "where": None if where is None else Where(**where)})


@frozen
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
