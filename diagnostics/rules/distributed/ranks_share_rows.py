"""See `RanksShareRows`."""

from __future__ import annotations

from itertools import combinations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.replicas import ReplicaFacts
from diagnostics.text.join import count_of, listed

FEWEST_BATCHES = 3  # distinct ones: a script may repeat one batch on every rank on purpose


class RanksShareRows(Rule):
    """Ranks that share a model train on the same batches.

    ## What it does
    Under `diagnose run` with several processes, the rule compares checksums of the batches that a model wrapped in
    DistributedDataParallel receives on each rank after optimizer steps 0, 1, 2, 4, 8 and so on.

    ## Why it is bad
    Ranks with the same rows compute the same gradients, so the work of all ranks but one is wasted. An epoch takes
    as long as on a single rank, and the effective batch is no larger than the batch of one rank.

    ## Example
    ```python
    torch.manual_seed(0)
    # the same order on every rank
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    ```

    ## Instead
    ```python
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
    ```

    ## Thresholds
    Two ranks must have received the same batch after every recorded step, and at least three of these batches must
    differ from each other.

    ## Known problems
    Ranks that read the same rows in different orders are missed.

    ## Sources
    The documentation for `torch.utils.data.distributed.DistributedSampler`.
    """

    severity = "warning"

    @check
    def from_replicas(self, replicas: ReplicaFacts) -> Finding | None:
        """Compare the ranks' checksums."""
        rows = {
            rank: tuple(samples[number].rows for number in replicas.steps)
            for rank, samples in replicas.ranks.items()
        }
        if len(rows) < 2 or any(None in seen or len(set(seen)) < FEWEST_BATCHES for seen in rows.values()):
            raise NotApplicable("needs three different batches from each of two ranks")
        same = [pair for pair in combinations(sorted(rows), 2) if rows[pair[0]] == rows[pair[1]]]
        if not same:
            return None
        compared = count_of(len(replicas.steps), "step")
        ranks = sorted({rank for pair in same for rank in pair})
        spare = "one of the two does" if len(ranks) == 2 else "all but one of these ranks do"
        return self.found(
            f"Ranks {listed(ranks)} got the same batch at all {compared} compared. Their gradients are equal, "
            f"so averaging changes nothing, and {spare} no useful work.",
            fix=(
                "DataLoader(dataset, sampler=DistributedSampler(dataset)), with sampler.set_epoch(epoch) before "
                "each epoch",
                "for an IterableDataset, split the stream by rank (itertools.islice(rows, rank, None, world))",
            ),
            evidence={"ranks": ranks, "steps": list(replicas.steps)},
        )
