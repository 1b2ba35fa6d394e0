"""See `UnevenBatches`."""

from __future__ import annotations

import re

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.ranks.notes import JoinedNotes, RankNotes
from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.rules.shared.stall import by_call, call, duration, elsewhere, waiting
from diagnostics.text.join import count_of

LOST = re.compile(
    r"closed by peer|reset by peer|broken pipe|connection refused|remote process exited|timed? ?out|aborted|"
    r"failed to (?:recv|send|connect)|store gone|no longer alive",
    re.IGNORECASE,
)
"""Matches error messages from gloo, NCCL and PyTorch's store when the other side is gone."""


class UnevenBatches(Rule):
    """The ranks have different numbers of batches, so one rank waits for others that have already finished.

    ## What it does
    Under `diagnose run` with several processes, each rank counts its backward passes and the batches it gets from
    a DataLoader during training. The counts are compared if no rank is making progress, or if one rank has exited
    normally and another rank then loses its connection to it.

    ## Why it is bad
    Each backward pass under DistributedDataParallel, and each forward pass under FSDP, is a collective: every rank
    must take part. A rank with one extra batch waits until the timeout kills the job. In earlier epochs, its extra
    step is matched with the first step of the next epoch on the other ranks, so the problem goes unnoticed until
    the last epoch.

    ## Example
    ```python
    mine = rows[rank::world]                        # 13 rows on rank 0, 12 on rank 1
    loader = DataLoader(mine, batch_size=4)         # 4 batches on rank 0, 3 on rank 1
    ```

    ## Instead
    ```python
    # pads all shards to the same size
    loader = DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows))
    ```

    ## Thresholds
    None: a difference of one batch is enough. But the difference is reported only when the ranks hang or fail.

    ## Known problems
    Within `model.join()`, nothing is reported. If the batches do not come from a DataLoader, only the backward
    passes are compared, and only after a rank has exited.

    ## Sources
    The documentation for `torch.nn.parallel.DistributedDataParallel.join`; PyTorch's tutorial "Distributed
    Training with Uneven Inputs Using the Join Context Manager".
    """

    severity = "error"
    causes = ("mismatched-collective", "stalled-rank", "collective-timeout", "unreachable-rank")

    @check
    def from_stall(self, stall: StallFacts) -> Finding | None:
        """Compare the batches of ranks that are stuck in different places."""
        waits = waiting(stall)
        known = [rank for rank in stall.ranks if rank.epochs or rank.drawn]
        if not waits or len(known) < 2:
            raise NotApplicable("needs the batch counts of two ranks, one of them waiting in a collective")
        if len(by_call(waits)) < 2 and not elsewhere(stall):
            return None  # all wait in the same call: no rank has left
        for less in known:
            for more in known:
                epoch = _further(less, more)
                if epoch is None or not more.collective:
                    continue
                return self._found(
                    f"No rank has made progress for {duration(min(rank.idle for rank in stall.ranks))}. In "
                    f"pass {epoch + 1} over the training loader, rank {less.number} got "
                    f"{count_of(less.epochs[epoch], 'batch', 'batches')}, but rank {more.number} got more. Rank "
                    f"{more.number} is waiting for rank {less.number} in {call(more)}, but rank {less.number} has "
                    "finished its batches.",
                    {str(rank.number): [*rank.epochs, *([rank.drawn] if rank.drawn else [])] for rank in known},
                    more,
                )
        return None

    @check
    def from_ranks(self, joined: JoinedNotes) -> Finding | None:
        """Compare a rank that ran to its end with one that lost the connection."""
        done = [rank for rank in joined.ranks.values() if rank.exit_code == 0 and not rank.error]
        lost = [rank for rank in joined.ranks.values() if rank.exit_code and LOST.search(rank.error)]
        if not done or not lost or any(rank.joined for rank in joined.ranks.values()):
            raise NotApplicable("needs a rank that finished and another that lost the connection to it")
        for less in done:
            for more in lost:
                if (counted := _counted(less, more)) is None:
                    continue
                kind, fewer, further = counted
                return self._found(
                    f"Rank {less.number} finished after {count_of(fewer, *kind)}. Rank {more.number} was waiting "
                    f"for rank {less.number} in {kind[0]} {further:,}, and failed when the connection was lost.",
                    {
                        str(rank.number): {"batches": rank.batches, "backward_passes": rank.backward_passes}
                        for rank in joined.ranks.values()
                    },
                    None,
                )
        return None

    def _found(self, message: str, batches: dict[str, object], rank: StalledRank | None) -> Finding:
        return self.found(
            f"{message} Every step runs a collective operation, so all ranks must take the same number of steps.",
            fix=FIX,
            evidence={"batches": batches},
            where=None if rank is None else rank.where,
        )


FIX: Fix = (
    (
        "use DistributedSampler(dataset), which gives every rank the same number of rows, and drop_last=True for "
        "the loader"
    ),
    "wrap the epoch in `with model.join():`, which joins collectives on behalf of finished ranks",
    "for a stream, find the smallest batch count with dist.all_reduce(count, dist.ReduceOp.MIN), and iterate "
    "over islice(loader, count)",
    "to stop early, decide on one rank and broadcast the decision",
)


def _further(less: StalledRank, more: StalledRank) -> int | None:
    """Return the first iteration in which one rank got fewer batches than the other; None if there is none."""
    theirs = [*more.epochs, more.drawn]
    return next((n for n, ended in enumerate(less.epochs) if n < len(theirs) and ended < theirs[n]), None)


def _counted(less: RankNotes, more: RankNotes) -> tuple[tuple[str, str], int, int] | None:
    """Return what one rank had fewer of, and both counts; None if there is no such difference."""
    kinds = {
        ("batch", "batches"): (less.batches, more.batches),
        ("backward pass", "backward passes"): (less.backward_passes, more.backward_passes),
    }
    if any(fewer > further for fewer, further in kinds.values()):
        return None
    return next(((kind, *pair) for kind, pair in kinds.items() if 0 < pair[0] < pair[1]), None)
