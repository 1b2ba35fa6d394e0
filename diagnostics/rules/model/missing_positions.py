"""See `MissingPositions`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import OrderFit, TargetHistory, Verdicts
from diagnostics.facts.dependence import DependenceFacts, OrderFacts
from diagnostics.facts.pipeline import LossFacts
from diagnostics.facts.training import LossHistory

REL_TOLERANCE = 1e-4  # of the spread of the predictions; a different order of summation leaves about 1e-6
LEARNED = 0.5  # of the constant prediction's loss; below it, the tokens alone were enough for the model
THIRDS = 3  # of the run; the last shows what was reached, the one before whether the loss still falls
CONFLICTS = 0.5  # of those between any two tokens; label noise causes fewer
BETTER, ERRORS = 0.8, 3.0  # of the error without the order, at most; and standard errors below that error
FALLING = 0.9  # of the second third's losses; below it, the run is still learning from the tokens

UNKNOWN: Final = (
    "It is unknown whether the targets depend on the order; a sum of the tokens, for example, would not."
)


class MissingPositions(Rule):
    """A model with attention has no information about the order of its tokens.

    ## What it does
    After the run, permutes the tokens of some rows, along with their masks, and compares the predictions of a copy
    of the model. The rule fires if attention covers all positions and every prediction either stays the same or
    moves along with its token.

    ## Why it is bad
    Attention treats its input as a set. Without position embeddings, "dog bites man" and "man bites dog" are the
    same to the model, and it cannot learn anything that depends on the order. The loss still falls as far as the
    words alone allow.

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
    None of the predictions may change by more than 1/10000 of the spread of the predictions. At least half of the
    rows in the batch must be unsorted and contain a repeated token; otherwise the rows may be sets. The final loss
    must be more than half the loss of a constant prediction.

    The finding is a warning only if one of two tests shows that the order matters:

    - If each token has a target, identical tokens within a row must have different targets at least half as often
      as any two tokens do.
    - If each row has a target, the error of a model fitted to the token positions must be at most 80% of the error
      of a model fitted to the token counts (both on held-out rows). For classes, it must also be at least three
      standard errors lower.

    Even then, the finding is a note if the loss of a constant prediction is not known, or if the training loss
    still fell by more than 10% from the second third of the run to the last.

    ## Known problems
    Decoders without position embeddings are not reported, because a causal mask reveals the order. Rows of floats
    are not checked, because they may be point clouds.

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
            "add sinusoidal positional encodings before the first layer of the encoder",
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
        """Compare the predictions for the same tokens in two different orders."""
        order = dependence.order
        if order is None:
            raise NotApplicable(dependence.why_not.get("order", "needs a model with attention over tokens"))
        if not dependence.trained or not order.spread > 0:
            raise NotApplicable("needs the trained model's weights, and predictions that differ")
        if order.change > REL_TOLERANCE * order.spread:
            return None
        before, share = _left(targets, losses, loss)
        if share is not None and share <= LEARNED:
            return None
        settled = share is not None and before is not None and share >= FALLING * before
        proof = _proof(order, None if targets is None else targets.order)
        what = f"no prediction changes by more than {order.change:.1g}"
        if order.by_position:
            what = f"each prediction moves along with its token (to within {order.change:.1g})"
        left = "" if share is None else f" The final loss is {share:.0%} of a constant prediction's loss."
        return self.found(
            f"The model does not know the order of its tokens. When the {order.length} tokens of each row are "
            f"shuffled, {what}, although predictions differ from each other by {order.spread:.2g}. The model's "
            f"attention ({order.attention}) treats the tokens as an unordered set.{left} {proof or UNKNOWN}",
            severity="warning" if settled and proof and verdicts.complete else "note",
            evidence={
                "change": order.change,
                "spread": order.spread,
                "length": order.length,
                "share_of_constant_loss": share,
            },
        )


def _proof(order: OrderFacts, fit: OrderFit | None) -> str | None:
    """Return the evidence that the targets depend on the order; None if there is none."""
    if order.conflicts is not None and order.by_chance is not None:
        if order.conflicts < CONFLICTS * order.by_chance:
            return None
        return (
            f"The targets depend on the order: {order.conflicts:.0%} of the pairs of identical tokens within a "
            f"row have different targets, compared with {order.by_chance:.0%} of all token pairs."
        )
    if fit is None or fit.of_places > BETTER * fit.of_counts:
        return None
    by_chance = math.sqrt(fit.of_counts * max(0.0, 1 - fit.of_counts) / fit.predicted)
    if fit.of_classes and fit.of_counts - fit.of_places < ERRORS * by_chance:
        return None
    what = "an error rate" if fit.of_classes else "a relative squared error"
    return (
        "The targets depend on the order: on "
        f"{fit.predicted} held-out rows, a model fitted to the token positions has {what} of "
        f"{_number(fit.of_places, fit)}, compared with {_number(fit.of_counts, fit)} for a model fitted to the "
        "token counts."
    )


def _number(error: float, fit: OrderFit) -> str:
    return f"{error:.0%}" if fit.of_classes else f"{error:.3g}"


def _left(
    targets: TargetHistory | None, losses: LossHistory | None, loss: LossFacts | None
) -> tuple[float | None, float | None]:
    """Return the losses of the last two thirds as shares of a constant prediction's; None if unknown."""
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
