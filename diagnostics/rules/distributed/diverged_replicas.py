"""See `DivergedReplicas`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.replicas import ReplicaFacts
from diagnostics.text.join import listed

TOLERANCE = 1e-3
"""Share of a parameter's typical value. Equal gradients give equal bits on equal hardware; other processors may
round differently, by 1e-7 per step in float32."""
MAX_NAMED = 6
BY_WRAPPER = "DistributedDataParallel keeps replicas in sync only while it averages every gradient."
BY_HAND = (
    "The script averages their gradients with all_reduce, which keeps replicas in sync only if all of them start "
    "from the same weights and each step uses the averaged gradients."
)
SAME_SETTINGS = "use the same optimizer, learning rate and clipping on every rank"
FIX = (
    "run the last backward pass of each step outside no_sync() and through the wrapper, so that the gradients are "
    "averaged",
    "change weights on every rank, not only on one: load checkpoints on every rank before wrapping the model",
    SAME_SETTINGS,
)
FIX_AT_START = (
    "load checkpoints and initialise layers before wrapping the model: DistributedDataParallel broadcasts rank "
    "0's weights only once, in its constructor",
    "on every rank, load the same checkpoint and initialise with the same seed",
    SAME_SETTINGS,
)
ALIKE_AT_FIRST = 0.2
"""Share of the typical value by which half of the parameters may differ after the first step. Model copies are
one step apart; models from different seeds are further apart, and may be trained separately on purpose."""
FEWEST_SAMPLES = 3
FIX_APART = (
    "wrap the model before creating the optimizer, and call the wrapper: model = DistributedDataParallel(model)",
    (
        "with Accelerate, call accelerator.prepare(model, optimizer, loader): only a prepared model has its "
        "gradients averaged"
    ),
    "average the gradients between backward() and step(): dist.all_reduce(parameter.grad); parameter.grad /= "
    "dist.get_world_size()",
)
FIX_BY_HAND = (
    "all_reduce the gradients after backward() and before optimizer.step(), and divide them by the world size",
    "start every rank from the same weights: dist.broadcast(parameter.data, 0) once for each parameter and buffer",
    SAME_SETTINGS,
)


class DivergedReplicas(Rule):
    """The replicas of one model differ between ranks even though they should be identical.

    ## What it does
    Under `diagnose run` with several processes, each rank samples a few values from the parameters of a model
    wrapped in DistributedDataParallel, after optimizer steps 0, 1, 2, 4, 8 and so on. If there is no wrapper, the
    parameters of the first optimizer are sampled in two cases:

    - The script averages most of the gradients with `all_reduce`.
    - The loaders give each rank its share of the rows (DistributedSampler, Accelerate), but nothing averages the
      gradients.

    ## Why it is bad
    Replicas stay identical only if they start from the same weights and average their gradients. If they differ,
    each rank trains a different model, and rank 0 saves and evaluates only its own.

    ## Example
    ```python
    with model.no_sync():  # includes the step: gradients are never averaged
        loss_fn(model(inputs), targets).backward()
        optimizer.step()
    ```

    ## Instead
    ```python
    with model.no_sync():
        loss_fn(model(first), targets).backward()
    loss_fn(model(second), targets).backward()  # averages the accumulated gradients
    optimizer.step()
    ```

    ## Thresholds
    At least one sampled value of a parameter must differ between two ranks by more than 0.1% of the typical
    magnitude of that parameter's values.

    ## Known problems
    Only ranks on the same host are compared. Models wrapped in FSDP, models with a communication hook, and models
    within `model.join()` are not compared. Replicas may be wrongly reported if they are averaged only
    occasionally, inside a function compiled with `torch.compile`, or through files.

    ## Sources
    "Distributed Data Parallel" in PyTorch's notes (construction, backward pass).
    """

    severity = "error"
    causes = ()

    @check
    def from_replicas(self, replicas: ReplicaFacts) -> Finding | None:
        """Find the first step and parameter that differ."""
        if len(replicas.ranks) < 2 or not replicas.steps:
            raise NotApplicable("needs two ranks on one host that train the same model")
        if replicas.apart:
            return self._apart(replicas)
        equal = None
        for number in replicas.steps:
            differing = list(_differing(replicas, number))
            if not differing:
                equal = number
                continue
            name, pair, size = differing[0]
            others = len(differing) - 1
            more = f", and {others} more parameter{'s differ' if others > 1 else ' differs'}" if others else ""
            since = (
                f"have differed from the start: after step {number},"
                if equal is None
                else f"were identical after step {equal} but differ after step {number}:"
            )
            return self.found(
                f"The replicas of {replicas.model} {since} {name} differs between ranks {listed(pair)} by "
                f"{size:.1%} of its typical value{more}. {BY_HAND if replicas.by_hand else BY_WRAPPER}",
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

    def _apart(self, replicas: ReplicaFacts) -> Finding | None:
        """Look for replicas that start identical but are never synchronised."""
        first, last = replicas.steps[0], replicas.steps[-1]
        sizes = {name: size for name, _, size in _differing(replicas, first)}
        held = next(iter(replicas.ranks.values()))[first].weights
        if len(replicas.steps) < FEWEST_SAMPLES or not held:
            raise NotApplicable("needs more steps from two ranks that train the same model")
        if float(np.median([sizes.get(name, 0.0) for name in held])) > ALIKE_AT_FIRST:
            raise NotApplicable("the ranks start from different weights, perhaps on purpose")
        differing = list(_differing(replicas, last))
        if not differing:
            return None
        name, pair, size = max(differing, key=lambda one: one[2])
        return self.found(
            f"Each of the {len(replicas.ranks)} ranks trains its own {replicas.model} on its share of the rows. "
            "The model is not wrapped in DistributedDataParallel, and no collective since the first step "
            f"was large enough to average gradients or weights. After step {last}, {name} differs between "
            f"ranks {listed(pair)} by {size:.1%} of its typical value.",
            fix=FIX_APART,
            evidence={
                "step": last,
                "parameters": [name for name, *_ in differing[:MAX_NAMED]],
                "ranks": list(pair),
                "relative_difference": size,
            },
            step=last,
        )


def _differing(replicas: ReplicaFacts, number: int) -> Iterator[tuple[str, tuple[int, int], float]]:
    """Yield each parameter that differs, with two ranks and the relative difference."""
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
