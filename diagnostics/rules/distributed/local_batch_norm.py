"""See `LocalBatchNorm`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.replicas import WrapperFacts
from diagnostics.text.join import count_of, listed

FEW_ROWS = 8
"""Rows per rank. Wu and He (2018) measured ResNet-50 with batch norm: the error on ImageNet is 23.6% at 32 rows,
24.8% at 8, 27.3% at 4 and 34.7% at 2."""
MAX_NAMED = 3


class LocalBatchNorm(Rule):
    """Under DistributedDataParallel, batch norm computes its statistics from the few rows of a single rank.

    ## What it does
    Under `diagnose run` with several processes, the rule looks for batch norm layers in training mode that are not
    `SyncBatchNorm`, and counts the rows that each rank processes per forward pass.

    ## Why it is bad
    The effective batch includes the rows of all ranks, but the mean and variance are computed from the rows of one
    rank. If a rank has few rows, the mean and variance are noisy. The relative standard error of the variance is
    about sqrt(2/(n-1)) for n values per channel: 53% for 8 values and 82% for 4.

    ## Example
    ```python
    model = DistributedDataParallel(ResNet())           # 2 images on each of 8 GPUs
    ```

    ## Instead
    ```python
    model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(ResNet()))
    ```

    ## Thresholds
    Each rank must process at most 8 rows per forward pass. At that batch size, the error of models trained on
    ImageNet begins to rise.

    ## Known problems
    The finding is only a note, because the alternative, `SyncBatchNorm`, costs one all-gather per layer and
    forward pass, and runs only on GPUs.

    ## Sources
    Wu and He, "Group Normalization" (2018), figure 1; the documentation for `torch.nn.SyncBatchNorm`.
    """

    severity = "note"

    @check
    def from_wrapper(self, wrapper: WrapperFacts) -> Finding | None:
        """Check for local batch norm layers, and the batch of one rank."""
        if wrapper.world < 2 or not wrapper.wrapped or wrapper.rows is None:
            raise NotApplicable("needs batches from a model trained on multiple ranks")
        if not wrapper.local_norms or wrapper.rows > FEW_ROWS:
            return None
        count = count_of(len(wrapper.local_norms), "batch norm layer")
        return self.found(
            f"{count} of {wrapper.model} ({listed(wrapper.local_norms, most=MAX_NAMED)}) "
            f"{'compute' if len(wrapper.local_norms) > 1 else 'computes'} the mean and variance over the "
            f"{count_of(wrapper.rows, 'row')} of one rank, not over the {wrapper.world * wrapper.rows:,} "
            f"rows of all {wrapper.world} ranks.",
            fix=(
                (
                    "call nn.SyncBatchNorm.convert_sync_batchnorm(model) before wrapping the model; this adds one "
                    "all-gather per layer to each forward pass"
                ),
                "use nn.GroupNorm, which does not depend on other rows",
                "keep batch norm in eval mode, if the model is pretrained",
            ),
            evidence={"layers": list(wrapper.local_norms), "rows": wrapper.rows, "world": wrapper.world},
        )
