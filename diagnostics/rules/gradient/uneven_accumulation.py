"""See `UnevenAccumulation`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.training import LabelWeightFacts

STEPS = 4  # that were measured
RATIO = 2.0  # of the weights of two labels in a step
OFTEN = 0.5  # of the steps
MISPLACED = 0.2  # of the weight of a step


class UnevenAccumulation(Rule):
    """Accumulated micro-batches are weighted equally although their numbers of labels differ widely.

    ## What it does
    In a watched run that makes several backward passes per optimizer step, the rule measures at sampled steps how
    many labels each pass trains on (those that the loss does not ignore), and how much each label contributes to
    the gradient. It accounts for whatever the loss is divided by.

    ## Why it is bad
    A loss is usually the mean over the labels of one micro-batch. Dividing it by the number of micro-batches gives
    a mean of means: a label in a micro-batch of 10 labels counts fifty times as much as a label in a micro-batch
    of 500. The model learns short answers at the expense of long ones. The gradient is not that of the full batch,
    so the result depends on how many rows fit into memory.

    ## Example
    ```python
    for micro in micro_batches:
        loss = model(**micro).loss / len(micro_batches)
        loss.backward()
    optimizer.step()
    ```

    ## Instead
    ```python
    labels = sum((micro["labels"][:, 1:] != -100).sum() for micro in micro_batches)
    for micro in micro_batches:
        loss = model(**micro, num_items_in_batch=labels).loss  # its sum / all labels
        loss.backward()
    optimizer.step()
    ```

    ## Thresholds
    There must be at least 4 measured steps. In at least half of them, one label must have at least twice the
    weight of another. In the median step, at least 20% of the weight would have to move from some passes to others
    to give all labels equal weights. For comparison: with log-normal text lengths (standard deviation of the
    logarithm: 0.6), this share is 22% for eight micro-batches of one text each, and 12% for eight micro-batches of
    four texts each. These thresholds are our own.

    ## Known problems
    If the number of labels in each pass never changes from step to step, the passes are not compared, because they
    may be weighted on purpose, as with a labelled and an unlabelled batch. The rule does not check losses with
    class weights, passes with several losses, or models called through `torch.compile`. It does not compare the
    ranks of a distributed run, whose gradients are averaged in the same way. Keras is not covered, although its
    `gradient_accumulation_steps` averages in the same way.

    ## Sources
    Public issues about transformers' Trainer: huggingface/transformers #34191 and #35203.
    """

    severity = "warning"

    @check
    def from_passes(self, labels: LabelWeightFacts) -> Finding | None:
        """Compare the weights of the labels within each step."""
        if len(labels.steps) < STEPS:
            raise NotApplicable(f"needs {STEPS} measured steps that accumulate several backward passes")
        if not _vary(labels.counts):
            return None
        ratios = np.array([weights.max() / weights.min() for weights in labels.weights])
        misplaced = np.array(list(map(_misplaced, labels.counts, labels.weights)))
        uneven = ratios >= RATIO
        if uneven.mean() < OFTEN or np.median(misplaced) < MISPLACED:
            return None
        found = np.flatnonzero(uneven)
        typical = int(found[np.argsort(misplaced[found])[len(found) // 2]])
        counts, weights = labels.counts[typical], labels.weights[typical]
        of_labels, of_weight = counts / counts.sum(), counts * weights / (counts @ weights)
        worst = int(np.abs(of_weight - of_labels).argmax())
        return self.found(
            "Micro-batches with very different numbers of labels count about the same. In step "
            f"{int(labels.steps[typical]):,}, a micro-batch with {of_labels[worst]:.0%} of the labels "
            f"({int(counts[worst]):,} of {int(counts.sum()):,}) has {of_weight[worst]:.0%} of the weight. In "
            f"{int(uneven.sum())} of {len(uneven)} measured steps, one label weighs at least twice as much as "
            f"another; in the median step, {np.median(ratios):.3g} times as much. The gradient is not that of the "
            "whole batch: labels in small micro-batches, such as short answers, count more.",
            fix=(
                "count the labels of all micro-batches of a step first, and divide each micro-batch's summed loss "
                'by that total: F.cross_entropy(..., reduction="sum") / total',
                "with a causal language model from transformers: model(**batch, num_items_in_batch=total)",
                "in a Trainer's compute_loss: divide the summed loss by the argument num_items_in_batch",
            ),
            evidence={
                "steps": len(ratios),
                "uneven_steps": int(uneven.sum()),
                "median_ratio": float(np.median(ratios)),
                "median_misplaced": float(np.median(misplaced)),
                "labels": counts.tolist(),
            },
            where=labels.where,
            step=int(labels.steps[typical]),
        )


def _vary(counts: tuple[Array, ...]) -> bool:
    """Return whether a pass, by its place in the step, has different numbers of labels in different steps."""
    passes = min(map(len, counts))
    return any(len({int(one[place]) for one in counts}) > 1 for place in range(passes))


def _misplaced(counts: Array, weights: Array) -> float:
    """Return the share of the weight that equal labels would put on other passes."""
    weight = counts * weights
    return float(np.abs(weight / weight.sum() - counts / counts.sum()).sum() / 2)
