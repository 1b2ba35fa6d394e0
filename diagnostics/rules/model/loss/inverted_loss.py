"""See `InvertedLoss`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.course import NegatedLoss, OpposedGradients
from diagnostics.facts.dependence import LossAtTarget
from diagnostics.text.join import among

UNTRAINED = 0.5  # of a constant prediction's loss; a model that starts below it was trained before
OPPOSED = 0.9  # of the sampled steps
WORSE = 0.1  # of the larger of both losses: how far right predictions must be above a constant one

MINIMISE = "remove maximize=True, which is only for maximising a score or reward"


class InvertedLoss(Rule):
    """The loss is higher for correct predictions than for wrong ones: its sign is wrong.

    ## What it does
    For Keras, the rule compares the values of the script's custom loss for three sets of predictions: values close
    to the targets, the mean target for every row, and the output of the trained model.

    For PyTorch, it uses the gradient of the model's output at sampled steps, and checks

    - whether the loss is the negative of a squared error or a cross entropy,
    - whether an optimizer with `maximize=True` increases such a loss, and
    - whether a step against the gradient moves the output away from the target.

    ## Why it is bad
    Training minimises the loss, even if its sign is wrong. If a score that should be high (Dice, IoU, a cosine)
    is minimised, it falls to 0: the curve looks perfect, but the model has learned to be wrong.

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
    Keras: the loss of correct predictions must be higher than the loss that the model reached. It must also exceed
    the loss of a constant prediction by more than 10% of the larger of these two losses. The targets must be masks
    or images with values from 0 to 1, or the loss must ignore the scale of the predictions, as a cosine does. Each
    prediction must have at least 8 values. A single value is enough if most targets are different and the
    correlation between predictions and targets is -0.5 or less.

    PyTorch: at least 4 steps must be sampled, and in at least 90% of them the loss must have the wrong sign. In
    addition, one of these must hold:

    - The run's losses equal the negative of a known formula to within 0.2%, and the targets are not all equal. The
      value of that formula rises over the run, and is initially at least half its value for a constant prediction.
    - For masks with at least 8 values per row, the gradient has the wrong sign at 95% or more of the foreground
      and at 95% or more of the background.
    - For other targets, the gradient points against the error (their cosine is at most -0.999), but is not a
      multiple of the target alone.

    ## Known problems
    Keras is covered only on TensorFlow, with one output, after `fit` or `train_on_batch` under `diagnose run`.
    PyTorch is covered only for models that return a single tensor. A loss that is meant to keep the predictions
    away from the targets (such as masks of areas to avoid) is wrongly reported.

    ## Sources
    Public reports of Dice and IoU coefficients that were minimised, and of losses with an extra minus sign.
    """

    severity = "warning"
    causes = ("loss-divergence", "exploding-gradients", *NO_LEARNING)

    @check
    def from_losses(self, losses: LossAtTarget) -> Finding | None:
        """Compare the loss of right predictions with that of a constant one."""
        above = losses.right - losses.constant
        if above <= WORSE * max(abs(losses.right), abs(losses.constant)) or losses.right <= losses.reached:
            return None
        if not losses.in_unit_range and not losses.scale_free:
            return None
        return self.found(
            f"The loss {losses.name} is higher for correct predictions than for wrong ones. It is "
            f"{losses.right:.4g} for predictions within 1% of the targets but {losses.constant:.4g} for a "
            f"constant prediction, and the model has reached {losses.reached:.4g}. Training lowers the "
            "loss, which makes the predictions wrong.",
            fix=(
                "return 1 - score (or -score), if a higher score is better",
                "do not negate keras.losses.cosine_similarity, which already has a minus sign",
            ),
            evidence={
                "loss": losses.name,
                "right": losses.right,
                "constant": losses.constant,
                "reached": losses.reached,
            },
        )

    @check
    def from_formula(self, loss: NegatedLoss) -> Finding | None:
        """Report a known loss that training increases."""
        if loss.one_target or loss.last <= loss.first or loss.first < UNTRAINED * loss.constant:
            return None
        name = loss.kind.replace("_", " ")
        does = (
            f"The optimizer has maximize=True, but the loss is the {name} between predictions and targets, which"
        )
        if not loss.maximized:
            does = f"The loss being minimised is the negative {name}: the {name} between predictions and targets"
        return self.found(
            f"{does} rose from {loss.first:.4g} to {loss.last:.4g}. Training makes the predictions worse.",
            fix=MINIMISE
            if loss.maximized
            else (f"loss = criterion(predictions, targets)  # the {name}, without a minus sign"),
            evidence={"loss": loss.kind, "first": loss.first, "last": loss.last, "maximized": loss.maximized},
        )

    @check
    def from_gradients(self, seen: OpposedGradients) -> Finding | None:
        """Report a run whose steps move the output away from the targets."""
        if seen.opposed < OPPOSED * seen.steps:
            return None
        moves = "makes the errors larger"
        if seen.of_masks:
            moves = "lowers the predictions in the foreground of the masks and raises them in the background"
        goes, loss = "descent", "The loss is higher for correct predictions than for wrong ones."
        if seen.maximized:
            goes, loss = "ascent", "The optimizer has maximize=True."
        return self.found(
            f"Training moves the predictions away from the targets: in "
            f"{among(seen.opposed, seen.steps, 'sampled step')}, a gradient-{goes} step {moves}. {loss}",
            fix=MINIMISE
            if seen.maximized
            else (
                "loss = 1 - score (or -score), if a higher score is better",
                "loss = error, without a minus sign",
            ),
            evidence={"steps": seen.steps, "opposed": seen.opposed, "maximized": seen.maximized},
        )
