"""See `SelfPairsInLoss`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.loss import SelfPairs


class SelfPairsInLoss(Rule):
    """A contrastive loss lets each row compete with itself, and the row itself always wins.

    ## What it does
    Checks whether the scores of the first cross entropy are similarities between each row of the batch and every
    row, including itself, although no row is its own target.

    ## Why it is bad
    No vector is more similar to a row than the row itself, whatever the weights. If it counts as a negative, it
    takes most of the probability: the loss cannot come near 0, the gradient of all true negatives is small, and
    the accuracy stays at 0.

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
    At least 8 rows, each with as many scores as there are rows. The scores are symmetric, equal on the diagonal
    and highest there, to within 0.2% of the largest; no row is its own target. The numbers are our choice.

    ## Known problems
    Similarities of vectors with different lengths, such as plain dot products, are not checked.

    ## Sources
    Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations" (2020), equation 1, whose
    sum leaves out the row itself.
    """

    severity = "warning"
    causes = ("loss-plateau", "not-learning", "initial-loss-off")

    @check
    def from_scores(self, pairs: SelfPairs) -> Finding | None:
        """Report scores of rows with themselves that count as negatives."""
        if pairs.others < 1:
            return None
        return self.found(
            f"The cross entropy is over the scores of each of {pairs.rows} rows with all {pairs.rows}, itself "
            f"among them: that score, {pairs.score:.3g}, is the highest of every row, and no row's target. The "
            "row itself counts as a negative that no weights can make less similar.",
            fix=(
                "scores = scores.masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), -torch.inf)",
                "leave the diagonal out of the sum over the negatives",
            ),
            evidence=vars(pairs),
        )
