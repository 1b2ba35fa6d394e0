"""See `MissingPositions`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import TargetHistory, Verdicts
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.pipeline import LossFacts
from diagnostics.facts.training import LossHistory

SAME = 1e-4  # of the spread of the predictions: another order of sums leaves some 1e-6
LEARNED = 0.5  # of the constant prediction's loss: below it, the model has found enough in the tokens alone
THIRDS = 3  # of the run: the last is what was reached, the one before says whether it still falls
FALLING = 0.9  # of the second third's losses: below it the run has not found all that is in the tokens


class MissingPositions(Rule):
    """A model with attention is not told in which order the tokens stand.

    ## What it does
    After the run, puts the tokens of some rows into another order, with the masks that belong to them, and asks a
    copy of the model again. Reports if every prediction stays what it was, or moves along with its token, in a
    model whose attention runs over all positions.

    ## Why it is bad
    Attention sees a set: nothing in it tells the first token from the last. Without an embedding of the positions
    "dog bites man" and "man bites dog" are the same to the model, and whatever depends on the order cannot be
    learned. The loss falls as far as the words alone allow, so it looks like a weak model.

    ## Example
    ```python
    hidden = self.encoder(self.embed(tokens))
    ```

    ## Instead
    ```python
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    hidden = self.encoder(self.embed(tokens) + self.position(positions))
    ```

    ## Thresholds
    No prediction changes by more than 1/10000 of the spread of the predictions. In at least half of the rows of
    the batch some token stands twice, and the row is not sorted: items of a basket and columns of a table do not
    repeat. Only where the loss ends above half of what a constant prediction costs: below it, the words were
    enough. A note where that cost is not known, and where the last third of the losses is still more than 10%
    below the second: the words may yet be enough. The numbers are ours.

    ## Known problems
    A causal mask tells a model the order of a text, so decoders without positions are not reported. Rows of floats
    are not judged: they may be points of a cloud, which have no order.

    ## Sources
    Vaswani et al., "Attention Is All You Need" (2017), section 3.5, on positional encoding; Haviv et al.,
    "Transformer Language Models without Positional Encodings Still Learn Positional Information" (2022), on causal
    models.
    """

    severity = "warning"
    causes = NO_LEARNING
    FIXES = {
        "torch": (
            "self.position = nn.Embedding(max_length, width); x = self.embed(tokens) + "
            "self.position(torch.arange(tokens.shape[1], device=tokens.device))",
            "or add sines and cosines of the positions before the first layer of the encoder",
        ),
    }

    @check
    def from_answers(
        self,
        dependence: DependenceFacts,
        verdicts: Verdicts,
        targets: TargetHistory | None = None,
        losses: LossHistory | None = None,
        loss: LossFacts | None = None,
    ) -> Finding | None:
        """Compare the predictions for the same tokens in two orders."""
        order = dependence.order
        if order is None:
            raise NotApplicable(dependence.why_not.get("order", "needs a model with attention over tokens"))
        if not dependence.trained or not order.spread > 0:
            raise NotApplicable("needs the model as it is after the run, and predictions that differ")
        if order.change > SAME * order.spread:
            return None
        before, share = _left(targets, losses, loss)
        if share is not None and share <= LEARNED:
            return None
        stands = share is not None and before is not None and share >= FALLING * before
        what = "each prediction moves along with its token" if order.by_position else "no prediction changes"
        left = "" if share is None else f" The loss ends at {share:.0%} of what a constant prediction costs."
        return self.found(
            f"The model does not know the order of its tokens: with the {order.length} tokens of each row in "
            f"another order, {what} (by {order.change:.1g}; the predictions differ by {order.spread:.2g}). Its "
            f"attention ({order.attention}) sees a set of tokens, and no positions are added to them.{left}",
            severity="warning" if stands and verdicts.complete else "note",
            evidence={
                "change": order.change,
                "spread": order.spread,
                "length": order.length,
                "share_of_constant_loss": share,
            },
        )


def _left(
    targets: TargetHistory | None, losses: LossHistory | None, loss: LossFacts | None
) -> tuple[float | None, float | None]:
    """Return the last two thirds' losses as shares of a constant prediction's; None if not known."""
    if targets is not None and len(targets.losses):
        parts = [
            (float(seen.sum()), float(constant.sum()))
            for seen, constant in zip(_late(targets.losses), _late(targets.constant_losses), strict=True)
        ]
        before, last = (seen / constant if constant > 0 else None for seen, constant in parts)
        return before, last
    floor = None if loss is None else loss.constant_baseline_loss
    if losses is None or not floor or not len(losses.values):
        return None, None
    before, last = (
        float(np.nanmean(part)) / floor if np.isfinite(part).any() else None for part in _late(losses.values)
    )
    return before, last


def _late(values: Array) -> tuple[Array, Array]:
    ends = [len(values) * third // THIRDS for third in range(1, THIRDS + 1)]
    return values[ends[0] : ends[1]], values[ends[1] :]
