"""See `RepeatedShuffle`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.notes import Iteration, RankNotes
from diagnostics.text.join import count_of

FEWEST_BATCHES = 2  # in an epoch: a single batch holds the same rows in any order


class RepeatedShuffle(Rule):
    """A DistributedSampler draws the same order in every epoch: `set_epoch` was not called.

    ## What it does
    Under `diagnose run` with several processes, the rule records the seed and the epoch of a
    `DistributedSampler(shuffle=True)` each time training starts a pass over the sampler's loader. The order of the
    rows depends only on these two numbers.

    ## Why it is bad
    Every epoch has the same batches in the same order, and no rank ever sees another rank's rows. The loss still
    falls, so nothing looks wrong.

    ## Example
    ```python
    for epoch in range(EPOCHS):
        for inputs, targets in loader:
    ```

    ## Instead
    ```python
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
    ```

    ## Thresholds
    While training with one optimizer, the script must have iterated over a dataset at least twice, each time in
    the same order and in at least two batches.

    ## Known problems
    A sampler with a custom `__iter__`, or without `shuffle`, is not checked.

    ## Sources
    The documentation for `torch.utils.data.distributed.DistributedSampler` (warning about `set_epoch`).
    """

    severity = "warning"

    @check
    def from_notes(self, notes: RankNotes) -> Finding | None:
        """Compare the orders of the iterations over each dataset."""
        groups: dict[tuple[int, int], list[Iteration]] = {}
        for one in notes.iterations:
            if one.shuffled is not None and one.batches >= FEWEST_BATCHES:
                groups.setdefault((one.dataset, one.optimizer), []).append(one)
        repeated = [group for group in groups.values() if len(group) > 1]
        if not repeated:
            raise NotApplicable("needs two training iterations over a loader with a shuffling DistributedSampler")
        same = next((group for group in repeated if len({one.shuffled for one in group}) == 1), None)
        if same is None or same[0].shuffled is None:
            return None
        seed, epoch = same[0].shuffled
        return self.found(
            f"{count_of(len(same), 'iteration')} over the training rows used the same order, because the "
            f"DistributedSampler shuffled with seed {seed} and epoch {epoch} every time. Without set_epoch, every "
            "epoch has the same batches, and this rank never gets the other ranks' rows.",
            fix="call sampler.set_epoch(epoch) at the start of each epoch, before iterating over the loader",
            evidence={
                "iterations": len(same),
                "seed": seed,
                "epoch": epoch,
                "batches": [one.batches for one in same],
            },
        )
