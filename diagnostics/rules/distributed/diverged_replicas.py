"""See `DivergedReplicas`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.replicas import ReplicaFacts
from diagnostics.text.join import listed

TOLERANCE = 1e-3
"""Of a parameter's typical value. Equal gradients give equal bits on equal hardware; different processors may
round differently, which is 1e-7 a step in float32."""
MAX_NAMED = 6
BY_WRAPPER = "DistributedDataParallel keeps them alike, as long as it averages every gradient."
BY_HAND = (
    "The script averages their gradients by all_reduce, which keeps them alike if all start from the same "
    "weights, and each step is made on the averages."
)
SAME = "the same optimizer, rate and clipping on every rank"
FIX = (
    "make no optimizer step on gradients from within no_sync(), and let each step's last backward pass go through "
    "the wrapper",
    "change no weights by hand on one rank: load checkpoints on every rank before wrapping",
    SAME,
)
FIX_AT_START = (
    "load checkpoints and initialise layers before wrapping: DistributedDataParallel hands out the weights of "
    "rank 0 in its constructor, and never again",
    "or do so on every rank alike",
    SAME,
)
FIX_BY_HAND = (
    "all_reduce the gradients after backward() and before optimizer.step()",
    "start alike: dist.broadcast(parameter.data, 0) for each parameter and buffer, once",
    SAME,
)


class DivergedReplicas(Rule):
    """The copies of one model, which the ranks should keep alike, differ.

    ## What it does
    Under `diagnose run` of several processes, each rank keeps a few values of up to 32 parameters of a model in
    DistributedDataParallel, at the first forward pass after optimizer steps 0, 1, 2, 4, 8 and so on, without a
    collective. Without the wrapper it keeps those of the first optimizer, after these steps, if the script
    averages most of their gradients by `all_reduce`, one by one or all in one tensor. When the ranks of a host
    have ended, these are compared.

    ## Why it is bad
    DistributedDataParallel starts all replicas alike and averages their gradients, so that they stay alike. If
    they differ, the gradients of each rank belong to another model, and their average to none; what rank 0 saves
    and evaluates is one of several models.

    ## Example
    ```python
    with model.no_sync():                       # around the step, too: the gradients are never averaged
        loss_fn(model(inputs), targets).backward()
        optimizer.step()
    ```

    ## Instead
    ```python
    with model.no_sync():
        loss_fn(model(first), targets).backward()
    loss_fn(model(second), targets).backward()  # averages what has gathered
    optimizer.step()
    ```

    ## Thresholds
    Two ranks differ in a value by more than a thousandth of the parameter's typical value.

    ## Known problems
    Only ranks of one host are compared, and no models in FSDP, whose ranks hold different parts. With a
    communication hook, as for local SGD, replicas may differ on purpose: they are not compared. Nor are those
    within `model.join()`, where one rank may be an epoch ahead. Batch norm's statistics are not compared:
    DistributedDataParallel takes those of rank 0.

    ## Sources
    "Distributed Data Parallel" in PyTorch's notes (construction, backward pass).
    """

    severity = "error"
    causes = ()

    @check
    def from_replicas(self, replicas: ReplicaFacts) -> Finding | None:
        """Find the first step and parameter that differ."""
        if len(replicas.ranks) < 2 or not replicas.steps:
            raise NotApplicable("needs two ranks of one host that share a model")
        equal = None
        for number in replicas.steps:
            differing = list(_differing(replicas, number))
            if not differing:
                equal = number
                continue
            name, pair, size = differing[0]
            others = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
            since = "from the start" if equal is None else f"since a step after step {equal}"
            return self.found(
                f"The replicas of {replicas.model} differ {since}: after step {number}, {name}{others} "
                f"{'differ' if others else 'differs'} between ranks {listed(pair)}, by {size:.1%} of its typical "
                f"value. {BY_HAND if replicas.by_hand else BY_WRAPPER}",
                fix=FIX_BY_HAND if replicas.by_hand else FIX if number else FIX_AT_START,
                evidence={
                    "step": number,
                    "parameters": [name for name, *_ in differing[:MAX_NAMED]],
                    "ranks": list(pair),
                    "relative_difference": size,
                },
                step=number,
            )
        return None


def _differing(replicas: ReplicaFacts, number: int) -> Iterator[tuple[str, tuple[int, int], float]]:
    """Yield parameter, two ranks and relative difference, where one differs."""
    first, *others = sorted(replicas.ranks)
    mine = replicas.ranks[first][number].weights
    for name, values in mine.items():
        here = np.asarray(values)
        typical = float(np.sqrt(np.mean(here**2))) if here.size else 0.0
        for other in others:
            there = np.asarray(replicas.ranks[other][number].weights.get(name, ()))
            if there.shape != here.shape or not here.size:
                continue
            difference = float(np.max(np.abs(there - here)))
            if np.isfinite(difference) and difference > TOLERANCE * max(typical, 1e-12):
                yield name, (first, other), difference / max(typical, 1e-12)
                break
