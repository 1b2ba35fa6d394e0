"""See `MismatchedCollective`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.ranks.stall import StallFacts
from diagnostics.rules.shared.stall import by_call, call, duration, elsewhere, waiting, who
from diagnostics.text.join import capitalized


class MismatchedCollective(MessageRule):
    """The ranks wait in different collectives, so none of them can complete.

    ## What it does
    Under `diagnose run`, if no rank has made progress for a long time, the rule compares the `torch.distributed`
    calls that the ranks are waiting in, and the lines that made these calls. In a pasted log, it recognises the
    message that `TORCH_DISTRIBUTED_DEBUG=DETAIL` prints.

    ## Why it is bad
    A collective completes only when every rank has called it. A rank that took a different branch waits in a
    different collective, and all ranks wait for each other until the timeout kills the job 10 or 30 minutes later.
    The error message names only the ranks that were waiting.

    ## Example
    ```python
    if loss.item() > worst:                 # true on one rank but not on another
        dist.all_reduce(histogram)
    dist.barrier()
    ```

    ## Instead
    ```python
    surprising = torch.tensor(loss.item() > worst)
    dist.all_reduce(surprising, dist.ReduceOp.MAX)      # every rank decides the same way
    if surprising:
        dist.all_reduce(histogram)
    ```

    ## Thresholds
    All ranks on the host must be stuck for the duration of `--stall-timeout` (default: 20 minutes).

    ## Known problems
    Ranks on different hosts are compared only if their reports go to a folder that all hosts share.

    ## Sources
    The documentation for `torch.distributed` ("Debugging", `TORCH_DISTRIBUTED_DEBUG`).
    """

    severity = "error"
    causes = ("stalled-rank", "collective-timeout")

    @check
    def from_stall(self, stall: StallFacts) -> Finding | None:
        """Compare the collectives that the ranks wait in."""
        if len(stall.ranks) < 2 or elsewhere(stall):
            raise NotApplicable("needs two ranks that are both waiting in a collective")
        groups = by_call(waiting(stall))
        if len(groups) < 2:
            return None
        most, *others = groups
        deviating = min(groups, key=len)
        first, second = (most[0], others[0][0])
        named = [rank for group in groups if group is not most for rank in group]
        return self.found(
            f"No rank has made progress for {duration(min(rank.idle for rank in stall.ranks))}. "
            f"{capitalized(who(most))} {_wait(len(most))} in {call(first)}, while {who(others[0])} "
            f"{_wait(len(others[0]))} in {call(second)}. Neither call can finish until every rank joins it.",
            fix=(
                "run the same collectives in the same order on every rank: look for a branch that depends on the "
                "rank, the data or the loss",
                "if a branch depends on data, decide on one rank and broadcast the decision",
                "give every rank the same number of batches: drop_last=True, a DistributedSampler, or "
                "model.join()",
            ),
            evidence={
                "ranks": {
                    str(rank.number): {
                        "collective": rank.collective,
                        "shapes": list(rank.shapes),
                        "made": rank.made,
                        "steps": rank.steps,
                        "where": None if rank.where is None else str(rank.where),
                    }
                    for rank in stall.ranks
                },
                "deviating": [rank.number for rank in (named if len(deviating) < len(most) else deviating)],
            },
            where=(deviating if len(deviating) < len(most) else others[0])[0].where,
        )


def _wait(count: int) -> str:
    return "are waiting" if count > 1 else "is waiting"
