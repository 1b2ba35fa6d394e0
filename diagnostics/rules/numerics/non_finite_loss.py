"""See `NonFiniteLoss`."""

from __future__ import annotations

import math

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, NotApplicable, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.facts.training import GradientHistory, LossHistory
from diagnostics.text import nonfinite

OVERFLOWS = 1e15  # the square of a few such numbers, summed, passes float32
EXPLODED = (
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # before optimizer.step()",
    "lower the learning rate",
)
NAMED = 8  # examples named in the message; the evidence holds them all


class NonFiniteLoss(MessageRule):
    """The loss is NaN or infinite.

    ## What it does
    Checks the loss of one batch. If the loss is not finite, the rule checks

    - whether the model's outputs are finite,
    - which individual examples have a loss that is not finite, and
    - what only these examples have in common: a non-finite or constant input, a label, a column's value, or a
      range of values.

    In a watched run, the rule names the first step where the loss was not finite even though the model's output
    was, or the step whose update made the weights non-finite. If the outputs exceed 1e15, the finding says that
    they overflow the loss. If the NaN arose in the forward pass itself, `non-finite-activations` or
    `non-finite-inputs` reports it instead.

    ## Why it is bad
    The gradient of such a loss is NaN for every weight that the loss depends on. One step later the whole model is
    NaN, and so is every later loss.

    ## Example
    ```python
    target = torch.log(price / area)              # a missing area is 0 in some rows
    loss = F.mse_loss(model(features), target)
    ```

    ## Instead
    ```python
    keep = area > 0
    target = torch.log(price[keep] / area[keep])
    loss = F.mse_loss(model(features[keep]), target)
    ```

    ## Thresholds
    There is no threshold for the loss. A common trait of the affected examples is named only if no other example
    has it. For a label or a range, the probability that as many randomly chosen examples would share such a trait
    must also be below 10%.

    ## Known problems
    Before training, only one batch is used; `watch` also finds a rare example in a later batch. Batch norm spreads
    the NaN from one bad example to the whole batch, so the bad example cannot be identified.

    ## Sources
    TensorFlow's documentation for `tf.nn.sparse_softmax_cross_entropy_with_logits` (labels out of range give NaN
    on a GPU); PyTorch issue 75181 (cross entropy is NaN where every label is ignored).
    """

    severity = "error"
    causes = ("non-finite-gradients", "unchanged-parameters", *NO_LEARNING)

    @check
    def from_loss(
        self, loss: LossFacts, outputs: OutputFacts | None = None, batch: BatchFacts | None = None
    ) -> Finding | None:
        """Check the loss and, if it is not finite, find its origin."""
        if math.isfinite(loss.value):
            return None
        from diagnostics.rules.shared.common_trait import shared_trait

        rows = (outputs.non_finite_rows if outputs else ()) or loss.non_finite_rows or ()
        origin, fix = _origin(loss, outputs, batch, rows)
        trait = shared_trait(rows, batch) if batch and rows else None
        told = " ".join(filter(None, (origin, trait)))
        return self.found(
            f"The loss of this batch is {'NaN' if math.isnan(loss.value) else 'infinite'}. {told} A single update "
            "with this loss turns every weight it depends on into NaN.",
            fix=f"check {'this example' if len(rows) == 1 else 'these examples'} first, then {fix}"
            if trait
            else fix,
            evidence={
                "loss": str(loss.value),  # as text: JSON has no NaN
                "outputs_finite": None if outputs is None else not outputs.non_finite_rows,
                "examples": list(rows),
                "shared": trait,
            },
        )

    @check
    def from_origin(self, origin: OriginFacts, gradients: GradientHistory | None = None) -> Finding | None:
        """Name the step if the loss or an update was the first to be non-finite."""
        if origin.kind == "optimizer step":
            return self._broken_by_update(origin)
        if origin.kind == "weights":
            return self._broken_weights(origin)
        unknown = origin.kind is None and origin.loss is not None and not math.isfinite(origin.loss)
        if origin.kind is None and not unknown:
            raise NotApplicable(
                f"needs a replay that reproduces the NaN, but {origin.reason or 'the replay did not'}"
            )
        if origin.kind != "loss" and not unknown:
            return None
        assert origin.loss is not None
        told = "The model's output is finite, so the cause is the loss or the labels."
        fix: Fix = (
            "look for a label that the loss does not accept, and for an unguarded log, division or square root"
        )
        if origin.largest is not None and origin.largest > OVERFLOWS:
            told = (
                f"The model's outputs are finite, but reach {origin.largest:.2g}, so the loss overflows. The "
                f"weights have exploded.{_gradient_before(origin, gradients)}"
            )
            fix = EXPLODED
        if origin.reason and not unknown:
            told += f" In eager mode, the framework raises: {origin.reason}."
        if unknown:
            told = "It is unknown whether the model's output was finite."
            fix = (
                "watch(..., every=1)  # finds the module where the NaN first appears",
                "run this step with torch.autograd.detect_anomaly or tf.debugging.enable_check_numerics",
            )
        return self.found(
            f"The loss at step {origin.step} is {'NaN' if math.isnan(origin.loss) else 'infinite'}; all earlier "
            f"values were finite. {told} {nonfinite.how_known(origin)} A single update with this loss turns "
            "every weight it depends on into NaN.",
            fix=fix,
            evidence=nonfinite.evidence(origin) | {"loss": str(origin.loss)},
            step=origin.step,
        )

    @check
    def from_history(self, losses: LossHistory) -> Finding | None:
        """Clear a run whose losses stayed finite."""
        import numpy as np

        if not np.isfinite(losses.values).all():
            raise NotApplicable("needs a replay of the step with the first NaN or infinity")
        return None

    def _broken_by_update(self, origin: OriginFacts) -> Finding:
        rate = ""
        if origin.learning_rate is not None:
            infinite = math.isinf(origin.learning_rate)
            rate = f" The learning rate was {'infinite' if infinite else f'{origin.learning_rate:.3g}'}."
        return self.found(
            f"After step {origin.step}, {nonfinite.parameters(origin)} contained NaN or infinity, although the "
            "gradient was finite. So the cause is the update itself, or code that changes the weights "
            f"afterwards.{rate} Every later loss is NaN.",
            fix=(
                "lower the learning rate",
                "give the optimizer an eps that does not round to 0 in the dtype of the weights",
                "look for code that scales or divides weights after the step",
            ),
            evidence=nonfinite.evidence(origin),
            step=origin.step,
        )

    def _broken_weights(self, origin: OriginFacts) -> Finding:
        finite = origin.loss is not None and math.isfinite(origin.loss)
        loss = (
            " The loss was still finite: some operations turn NaN into 0, as the ReLU of TensorFlow may on a CPU."
            if finite
            else ""
        )
        return self.found(
            f"By the end of step {origin.step}, {nonfinite.parameters(origin)} contained NaN or infinity."
            f"{loss} The cause is unknown: {origin.reason}.",
            fix=(
                "watch(..., every=1)  # finds the step where the NaN first appears",
                "look for NaN in the data: one update with a non-finite loss or gradient ruins the weights",
                "lower the learning rate",
            ),
            evidence=nonfinite.evidence(origin) | {"loss": None if origin.loss is None else str(origin.loss)},
            step=origin.step,
        )


def _gradient_before(origin: OriginFacts, gradients: GradientHistory | None) -> str:
    """Give the norm of the gradient in the step before, if that is known."""
    if gradients is None or not (before := gradients.steps == origin.step - 1).any():
        return ""
    norm = float(gradients.norms[before][0])
    return f" The gradient in step {origin.step - 1} had a norm of {norm:.3g}." if math.isfinite(norm) else ""


def _origin(
    loss: LossFacts, outputs: OutputFacts | None, batch: BatchFacts | None, rows: tuple[int, ...]
) -> tuple[str, str]:
    """Describe where the first non-finite value appears, and what to change there."""
    labels = None if batch is None else batch.class_labels
    if batch is not None and labels is not None and not labels.size:
        return (
            f"All labels in this batch are {batch.ignore_index}, which the loss ignores, so the loss is a mean "
            "over zero elements.",
            "skip batches in which every label is ignored, and look for truncation that removes the labels",
        )
    examples = _listed(rows, batch.size if batch else None)
    if outputs is not None and outputs.non_finite_rows:
        return (
            f"The model's output is already NaN or infinite in {examples}, so the cause is the model or its "
            "input, not the loss.",
            "find the first layer whose output is not finite: look for an unguarded division, log, sqrt or exp, "
            "and for overflow in half precision",
        )
    known = "It is unknown whether the model's output was finite."
    if outputs is not None:
        known = "The model's output is finite, so the cause is the loss or the labels."
    if rows:
        verb = "produces this loss on its" if len(rows) == 1 else "produce this loss on their"
        known += f" {examples[0].upper()}{examples[1:]} {verb} own."
    elif loss.non_finite_rows is not None:
        return (
            f"{known} The loss of each example on its own is finite: the problem arises in the reduction over the "
            "batch.",
            "average in float32, and check the denominator of the mean",
        )
    return (
        known,
        "look for a label that the loss does not accept, and for an unguarded log, division or square root",
    )


def _listed(rows: tuple[int, ...], size: int | None) -> str:
    """Name the examples: ``3 of the 8 examples (indices 1, 4 and 6)``."""
    if not rows:
        return ""
    if len(rows) == size and len(rows) > 1:
        return f"all {size} examples"
    if len(rows) == 1:
        return f"example {rows[0]} (counted from 0)"
    named = [str(row) for row in rows[:NAMED]]
    if left := len(rows) - len(named):
        named.append(f"{left} more")
    counted = f"{len(rows)} of the {size} examples" if size else f"{len(rows)} examples"
    return f"{counted} (indices {', '.join(named[:-1])} and {named[-1]})"
