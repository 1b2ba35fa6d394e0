"""See `ClippedByLocalNorm`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.notes import JoinedNotes
from diagnostics.text.join import listed

DIFFERENT = 0.01
"""Relative difference of two ranks' norms. The norm over all shards is one number, up to rounding (about 1e-6)."""
MAX_NAMED = 6


class ClippedByLocalNorm(Rule):
    """Sharded gradients are clipped by the norm of a single rank's shard.

    ## What it does
    Under `diagnose run` with several processes, the rule compares the norms that `torch.nn.utils.clip_grad_norm_`
    computes on each rank for the parameters of a FullyShardedDataParallel model.

    ## Why it is bad
    Each rank holds a shard of every gradient, and the function does not see the shards of the other ranks. The
    computed norm is therefore too small, and each rank scales its shard by a different factor, so the step no
    longer points along the gradient.

    ## Example
    ```python
    model = FullyShardedDataParallel(net)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    ```

    ## Instead
    ```python
    model = FullyShardedDataParallel(net)
    model.clip_grad_norm_(1.0)
    ```

    ## Thresholds
    At some step, the norms on two ranks must differ by more than 1%, and the larger norm must exceed the clipping
    limit.

    ## Known problems
    Only FullyShardedDataParallel is covered; with `fully_shard`, the function already computes the norm over all
    ranks.

    ## Sources
    The documentation for `FullyShardedDataParallel.clip_grad_norm_`; github.com/pytorch/pytorch/issues/72548.
    """

    severity = "warning"

    @check
    def from_ranks(self, joined: JoinedNotes) -> Finding | None:
        """Compare the norms of the ranks at the same steps."""
        ranks = {number: notes.clipped for number, notes in sorted(joined.ranks.items()) if notes.clipped}
        steps = sorted(set.intersection(*map(set, ranks.values()))) if ranks else []
        if len(ranks) < 2 or not steps:
            raise NotApplicable("needs two ranks that call clip_grad_norm_ on sharded gradients at the same step")
        for step in steps:
            norms = {number: clipped[step].norm for number, clipped in ranks.items()}
            low, high = min(norms.values()), max(norms.values())
            limit = min(clipped[step].limit for clipped in ranks.values())
            if high > limit and high - low > DIFFERENT * high:
                told = listed((f"{norm:.3g} on rank {rank}" for rank, norm in norms.items()), most=MAX_NAMED)
                return self.found(
                    f"Before optimizer step {step}, clip_grad_norm_ computed a gradient norm of {told} (limit "
                    f"{limit:.3g}). FullyShardedDataParallel shards the gradients, so each rank scaled its shard "
                    "by the norm of that shard alone.",
                    fix=(
                        "call the FSDP module's own method: model.clip_grad_norm_(LIMIT)",
                        "with Accelerate, call accelerator.clip_grad_norm_(model.parameters(), LIMIT)",
                    ),
                    evidence={"norms": {str(rank): norm for rank, norm in norms.items()}, "limit": limit},
                    step=step,
                )
        return None
