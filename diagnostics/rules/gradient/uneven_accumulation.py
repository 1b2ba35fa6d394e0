"""See `UnevenAccumulation`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.loss_call import AccumulatedLosses

STEPS = 3  # of those heard; fewer may be uneven by chance
MISPLACED = 0.1  # of the weight, in the median step: counts that are 20% from their mean, on average


class UnevenAccumulation(Rule):
    """Gradient accumulation averages the means of micro-batches that have different numbers of tokens.

    ## What it does
    In early steps that accumulate several gradients, records the cross entropy of each micro-batch: how many
    targets it averages over, leaving out ignored ones, and the weight of its mean in the gradient. Compares these
    weights with each micro-batch's share of all targets in the step.

    ## Why it is bad
    The mean loss of a batch gives each token the same weight. The mean of several means gives each micro-batch the
    same weight, so a token in a short answer counts more than one in a long answer. The gradient is not that of
    the whole batch: training depends on how the batch was split, and tokens in long texts have less influence.

    ## Example
    ```python
    for batch in micro_batches:
        loss = model(**batch).loss / len(micro_batches)
        loss.backward()
    ```

    ## Instead
    ```python
    tokens = sum((batch["labels"][:, 1:] != -100).sum() for batch in micro_batches)
    for batch in micro_batches:
        loss = model(**batch, num_items_in_batch=tokens).loss  # sum / all tokens
        loss.backward()
    ```

    ## Thresholds
    The cross entropy must be over several positions in each row, and there must be one for each forward pass. At
    least 3 of the steps 2 to 8 must have several such losses. In the median step, at least 10% of the weight must
    be in other micro-batches than in the whole batch, so the counts are 20% from their mean on average. For
    answers of 4 to 10 tokens, one at a time, it was 14%, and the gradient differed by 43% from that of the batch.
    A micro-batch with fewer rows than the others, like the last one of an epoch, is left out. The limits are our
    choice.

    ## Known problems
    If each micro-batch holds one example, the mean of means gives each example the same weight, which may be
    intended. A loss computed in a fused kernel is not recorded. Unequal numbers of tokens on the ranks of a
    distributed run have the same effect and are not compared.

    ## Sources
    huggingface/transformers, pull requests 34191 and 35203, and issue 24725; meta-pytorch/torchtune, pull request
    1875; the Hugging Face blog, "Fixing Gradient Accumulation" (2024).
    """

    severity = "warning"

    @check
    def from_losses(self, losses: AccumulatedLosses) -> Finding | None:
        """Compare the weight of each micro-batch with its share of the targets."""
        steps = [
            (targets[even], weights[even])
            for rows, targets, weights in zip(losses.rows, losses.targets, losses.weights, strict=True)
            if _is_known(targets, weights) and (even := rows == rows.max()).sum() > 1
        ]
        if len(steps) < STEPS:
            raise NotApplicable(f"needs {STEPS} steps with several micro-batches of as many rows")
        misplaced = [_misplaced(*step) for step in steps]
        median = float(np.median(misplaced))
        if median < MISPLACED:
            return None
        typical = int(np.argmin(np.abs(np.array(misplaced) - median)))
        targets, weights = steps[typical]
        of_token = weights / targets
        ratio = of_token.max() / of_token.min()
        return self.found(
            f"Each optimizer step accumulates the gradients of {len(targets)} mean losses, but the means are over "
            f"different numbers of tokens: {targets.min():,.0f} to {targets.max():,.0f} within one step. A token "
            f"in one micro-batch has up to {ratio:.1f} times the weight of a token in another, and {median:.0%} "
            "of the total weight falls on other micro-batches than it would in one large batch.",
            fix={
                "torch": "loss = F.cross_entropy(logits, labels, reduction='sum') / tokens  # of the whole step",
                "transformers": "loss = model(**batch, num_items_in_batch=tokens).loss  # of the whole step",
                "trainer": "Trainer(..., compute_loss_func=f), where f sums the losses / num_items_in_batch",
            },
            evidence={
                "steps": len(steps),
                "micro_batches": len(targets),
                "tokens": [int(count) for count in targets],
                "misplaced_weight": median,
            },
        )


def _is_known(targets: Array, weights: Array) -> bool:
    return bool((targets > 0).all() and np.isfinite(weights).all() and (weights > 0).all())


def _misplaced(targets: Array, weights: Array) -> float:
    """Return the share of the weight that is in other micro-batches than it would be by their targets."""
    return float(np.abs(weights / weights.sum() - targets / targets.sum()).sum() / 2)
