"""See `InvertedLoss`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.dependence import AnswerLosses

WORSE = 0.1  # of the larger of both losses, by which right predictions must lie above a constant one


class InvertedLoss(Rule):
    """The loss is higher for right predictions than for wrong ones: its sign is wrong.

    ## What it does
    Asks a loss that the script wrote itself three times, about rows of a batch: the predictions are nearly the
    targets, or the mean target for every row, or what the trained model predicts.

    ## Why it is bad
    Training makes the loss small, whatever it measures. A score that is to be high (Dice, IoU, a cosine) falls to
    0, the curve looks perfect, and the model has learned to be wrong.

    ## Example
    ```python
    def dice_loss(y_true, y_pred):
        return dice_coef(y_true, y_pred)
    ```

    ## Instead
    ```python
    def dice_loss(y_true, y_pred):
        return 1 - dice_coef(y_true, y_pred)
    ```

    ## Thresholds
    The loss of right predictions lies above that of a constant one by 10% of the larger of the two, and above what
    the model has reached. A prediction has 8 numbers or more: a single one may be a distance, which is to be low
    for pairs with the label 1; it counts where most targets differ and its correlation with them is -0.5 or less.
    The targets are masks or images from 0 to 1, or the loss takes no notice of the predictions' scale, as a
    cosine: of others the targets may be costs or advantages. The numbers are ours.

    ## Known problems
    Keras on TensorFlow only, after `fit` or `train_on_batch` under `diagnose run`; one output. A loss whose
    targets are no answers, such as masks of what must not be marked, is reported.

    ## Sources
    Public reports of Dice and IoU coefficients that were minimised.
    """

    severity = "warning"
    causes = NO_LEARNING

    @check
    def from_losses(self, losses: AnswerLosses) -> Finding | None:
        """Compare the loss of right predictions with that of a constant one."""
        above = losses.right - losses.constant
        if above <= WORSE * max(abs(losses.right), abs(losses.constant)) or losses.right <= losses.reached:
            return None
        if not losses.in_unit_range and not losses.scale_free:
            return None
        return self.found(
            f"The loss {losses.name} is higher for right predictions than for wrong ones: predictions that equal "
            f"the targets, but for 1%, score {losses.right:.4g}, a constant prediction {losses.constant:.4g}, "
            f"and the model has reached {losses.reached:.4g}. Training makes the loss small, and so the "
            "predictions wrong.",
            fix=(
                "return 1 - score, or -score, for a score that is to be high",
                "keras.losses.cosine_similarity has its minus sign already: add nothing, or 1",
            ),
            evidence={
                "loss": losses.name,
                "right": losses.right,
                "constant": losses.constant,
                "reached": losses.reached,
            },
        )
