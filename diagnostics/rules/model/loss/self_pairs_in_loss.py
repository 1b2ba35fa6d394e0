"""See `SelfPairsInLoss`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.loss_call import LossCall, LossCalls
from diagnostics.rules.shared.first_found import first_found

FEWEST_ROWS = 8
EQUAL = 2e-3  # of the largest score, as half precision rounds it
NEEDS = "needs scores for all pairs in a batch"


class SelfPairsInLoss(Rule):
    """A contrastive loss lets each row compete with itself, and the row itself always wins.

    ## What it does
    Checks whether the scores in the first cross entropy are similarities between each row of the batch and all
    rows, including itself, even though no row is its own target.

    ## Why it is bad
    No vector is more similar to a row than the row itself. If the row is one of its own negatives, it takes most
    of the probability: the loss cannot come close to 0, the gradients of all real negatives are small, and the
    accuracy stays at 0.

    ## Example
    ```python
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    similarity = z @ z.T / temperature
    loss = F.cross_entropy(similarity, positives)
    ```

    ## Instead
    ```python
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    loss = F.cross_entropy(similarity.masked_fill(itself, -torch.inf), positives)
    ```

    ## Thresholds
    There must be at least 8 rows, each with as many scores as there are rows. The score matrix must be symmetric.
    All values on its diagonal must be equal and the highest in their rows, to within 0.2% of the largest score.
    None of the rows may be its own target.

    ## Known problems
    Similarities between vectors with different norms, such as plain dot products, are not checked.

    ## Sources
    Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations" (2020), equation 1, whose
    sum excludes the row itself.
    """

    severity = "warning"
    causes = ("loss-plateau", "not-learning", "initial-loss-off")

    @check
    def from_calls(self, calls: LossCalls) -> Finding | None:
        """Report scores of rows with themselves that count as negatives."""
        return first_found(calls.calls, self._from_call)

    def _from_call(self, call: LossCall) -> Finding | None:
        scores, target = call.prediction, call.complete("target")
        if call.function != "cross_entropy" or scores is None or target is None or target.ndim != 1:
            raise NotApplicable(NEEDS)
        rows = len(target)
        if rows < FEWEST_ROWS or target.dtype.kind == "f" or scores.shape != (rows, rows):
            raise NotApplicable(NEEDS)
        if (itself := _own_scores(scores.values)) is None:
            raise NotApplicable(NEEDS)
        others = float((target != np.arange(rows)).mean())
        if others < 1:
            return None
        score = float(itself.mean())
        return self.found(
            f"The cross-entropy loss compares each of the {rows} rows with all {rows} rows, including itself. "
            f"Each row's score with itself ({score:.3g}) is its highest score, but is never the target. So each "
            "row is its own negative, and no weights can make a row less similar to itself.",
            fix=(
                "scores = scores.masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), -torch.inf)",
                "exclude the diagonal from the sum over the negatives",
            ),
            evidence={"rows": rows, "score": score, "others": others},
        )


def _own_scores(scores: Array) -> Array | None:
    """Return the score of each row with itself, if they are those of vectors of one length; None otherwise.

    Args:
        scores: (rows, n), of the first rows of a batch of n with all of them.
    """
    if len(scores) < FEWEST_ROWS:
        return None
    itself, square = scores.diagonal(), scores[:, : len(scores)]
    with np.errstate(all="ignore"):  # scores of -inf are masked
        limit = EQUAL * np.abs(scores).max()
        if not (itself > 0).all() or itself.max() - itself.min() > limit:
            return None
        asymmetric = np.abs(square - square.T).max() > limit
    return None if asymmetric or (scores.max(axis=1) > itself.max()).any() else itself
