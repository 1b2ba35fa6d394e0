"""See `RanksShuffleApart`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.notes import Iteration, JoinedNotes
from diagnostics.text.join import listed

MAX_NAMED = 6  # ranks in the message


class RanksShuffleApart(Rule):
    """Each rank takes its share of the rows from a different order or a different split.

    ## What it does
    Under `diagnose run` with several processes, the rule compares the seed and the epoch of the
    `DistributedSampler` between ranks. For a `Subset`, such as each part of a `random_split`, it also compares the
    indices.

    ## Why it is bad
    The ranks' shards are disjoint only if all ranks use the same order of rows. With different seeds, some rows
    are drawn twice in an epoch, and others not at all. With different splits, one rank trains on rows that another
    rank holds out, and the score is too high.

    ## Example
    ```python
    torch.manual_seed(42 + rank)
    train, held_out = random_split(dataset, [0.8, 0.2])  # a different split on every rank
    sampler = DistributedSampler(train)
    ```

    ## Instead
    ```python
    generator = torch.Generator().manual_seed(42)
    train, held_out = random_split(dataset, [0.8, 0.2], generator=generator)
    sampler = DistributedSampler(train)
    ```

    ## Thresholds
    None: a difference in one pass over the data is enough. Only datasets of the same length are compared.

    ## Known problems
    Splits other than a `Subset`, such as `Dataset.train_test_split` without a seed, are not compared.

    ## Sources
    The documentation for `DistributedSampler` (seed: "identical across all processes");
    github.com/Lightning-AI/pytorch-lightning/issues/7728, github.com/huggingface/accelerate/issues/2393.
    """

    severity = "warning"

    @check
    def from_ranks(self, joined: JoinedNotes) -> Finding | None:
        """Compare the iterations one by one."""
        ranks = {number: notes.iterations for number, notes in sorted(joined.ranks.items()) if notes.iterations}
        if len(ranks) < 2:
            raise NotApplicable("needs the training loaders of two ranks")
        compared = False
        for turn, at_once in enumerate(zip(*ranks.values(), strict=False)):
            if len({one.size for one in at_once}) > 1 or at_once[0].size is None:
                continue
            parts, orders = [one.part for one in at_once], [one.shuffled for one in at_once]
            compared |= None not in parts or None not in orders
            if None not in parts and len(set(parts)) > 1:
                return self._split(list(ranks), at_once, turn)
            if None not in orders and _differ(orders, len({len(epochs) for epochs in ranks.values()}) == 1):
                return self._shuffled(list(ranks), at_once, turn)
        if not compared:
            raise NotApplicable(
                "needs a DistributedSampler that shuffles, or a subset that is split among the ranks"
            )
        return None

    def _split(self, ranks: list[int], at_once: tuple[Iteration, ...], turn: int) -> Finding:
        return self.found(
            f"Ranks {listed(ranks, most=MAX_NAMED)} have different subsets of {at_once[0].size:,} training rows, "
            "and each rank takes its share from its own subset: the rows were split with different seeds. So rows "
            "held out for evaluation on one rank are training rows on another.",
            fix=(
                (
                    "split with the same seed on all ranks: random_split(dataset, lengths, "
                    "generator=torch.Generator().manual_seed(42))"
                ),
                "split on one rank, write the indices to a file, and read that file on all ranks",
            ),
            evidence={"ranks": ranks, "size": at_once[0].size, "iteration": turn},
        )

    def _shuffled(self, ranks: list[int], at_once: tuple[Iteration, ...], turn: int) -> Finding:
        orders = {rank: one.shuffled for rank, one in zip(ranks, at_once, strict=True)}
        told = listed(
            (f"({seed}, {epoch}) on rank {rank}" for rank, (seed, epoch) in _known(orders).items()),
            most=MAX_NAMED,
        )
        return self.found(
            f"The ranks' DistributedSamplers shuffle differently: (seed, epoch) is {told}. So the ranks' shares "
            "overlap: some rows are drawn several times in an epoch, others not at all.",
            fix=(
                "use DistributedSampler(dataset, seed=SEED) and set_epoch(epoch) with the same values on "
                "every rank",
                "use different seeds only for augmentation: torch.manual_seed(SEED + rank)",
            ),
            evidence={
                "orders": {str(rank): list(order) for rank, order in _known(orders).items()},
                "iteration": turn,
            },
        )


def _differ(orders: list[tuple[int, int] | None], equally_many: bool) -> bool:
    """Return whether seeds differ, or epochs after equally many iterations: a rank may be an epoch ahead."""
    seeds = {order[0] for order in orders if order is not None}
    return len(seeds) > 1 or (equally_many and len(set(orders)) > 1)


def _known(orders: dict[int, tuple[int, int] | None]) -> dict[int, tuple[int, int]]:
    return {rank: order for rank, order in orders.items() if order is not None}
