"""See `NonFiniteLoss`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.facts.training import LossHistory
from diagnostics.rules.shared.common_trait import shared_trait
from diagnostics.text import nonfinite

NAMED = 8  # examples named in the message; the evidence holds them all


class NonFiniteLoss(Rule):
    """The loss is NaN or infinite.

    ## What it does
    Looks at the loss of one batch, and then for where it comes from: whether the model's outputs are still
    finite, which examples give such a loss on their own, and what those examples share that no other does: a
    non-finite or constant input, a label, the value of a column, a range.

    While a model is watched: names the first step whose loss is not finite although the model's output was, or
    the step whose update left weights that are not. Where the forward pass itself made the NaN, the rules
    `non-finite-activations` and `non-finite-inputs` say so instead.

    ## Why it is bad
    The gradient of such a loss is NaN in every weight that it reaches. One step later the whole model is NaN,
    and every loss after it. The batch that did it can be found only before that step.

    ## Example
    ```python
    target = torch.log(price / area)              # the area is missing, 0, in some rows
    loss = F.mse_loss(model(features), target)
    ```

    ## Instead
    ```python
    keep = area > 0
    target = torch.log(price[keep] / area[keep])
    loss = F.mse_loss(model(features[keep]), target)
    ```

    ## Thresholds
    None for the loss. A trait is named as shared only where all of the examples concerned have it, no other
    example does; a label or a range, moreover, only where as many examples picked at random would share one
    in fewer than 1 of 10 batches. That limit is our choice; the trait is a hint, and does not raise the alarm.

    ## Known problems
    Before training, one batch is looked at; a rare example is found when it arrives, by `watch`. One example
    alone always has something that no other has, so no label and no range is named for it. In a small batch
    with many columns a range is no evidence, and is not named either. Batch norm spreads one bad example to all
    others, and then nothing tells them apart.

    ## Sources
    TensorFlow's documentation of `tf.nn.sparse_softmax_cross_entropy_with_logits` (labels out of range give
    NaN on a GPU); PyTorch issue 75181 (cross entropy is NaN where every label is ignored).
    """

    severity = "error"
    causes = ("non-finite-gradients", "unchanged-parameters", *NO_LEARNING)

    @check
    def from_loss(
        self, loss: LossFacts, outputs: OutputFacts | None = None, batch: BatchFacts | None = None
    ) -> Finding | None:
        """Look at the loss and, where it is not finite, for what it comes from."""
        if math.isfinite(loss.value):
            return None
        rows = (outputs.non_finite_rows if outputs else ()) or loss.non_finite_rows or ()
        origin, fix = _origin(loss, outputs, batch, rows)
        trait = shared_trait(rows, batch) if batch and rows else None
        told = " ".join(filter(None, (origin, trait)))
        return self.found(
            f"The loss of this batch is {'NaN' if math.isnan(loss.value) else 'infinite'}. {told} One step on "
            "such a loss turns every weight that it reaches into NaN.",
            fix=f"look at {'this example' if len(rows) == 1 else 'these examples'} first, then {fix}"
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
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Name the step, where the loss or an update was the first that was not finite."""
        if origin.kind == "optimizer step":
            return self._broken_by_update(origin)
        if origin.kind == "weights":
            return self._broken_weights(origin)
        unknown = origin.kind is None and origin.loss is not None and not math.isfinite(origin.loss)
        if origin.kind is None and not unknown:
            raise NotApplicable(f"needs the step run again; {origin.reason or 'that showed nothing'}")
        if origin.kind != "loss" and not unknown:
            return None
        assert origin.loss is not None
        told = "The model's output is finite, so it starts in the loss or the labels."
        fix = "look for a label that the loss cannot take, and for a log, a division or a root without a guard"
        if origin.reason and not unknown:
            told += f" Run eagerly, the framework refuses it: {origin.reason}."
        if unknown:
            told = "Whether the model's output was finite is not known."
            fix = (
                "watch with every=1, or run this step under the framework's own check (torch.autograd."
                "detect_anomaly, tf.debugging.enable_check_numerics): it says where it begins"
            )
        return self.found(
            f"The loss of step {origin.step} is {'NaN' if math.isnan(origin.loss) else 'infinite'}; before it all "
            f"was finite. {told} {nonfinite.how_known(origin)} One step on such a loss turns every weight that "
            "it reaches into NaN.",
            fix=fix,
            evidence=nonfinite.evidence(origin) | {"loss": str(origin.loss)},
            step=origin.step,
        )

    @check
    def from_history(self, losses: LossHistory) -> Finding | None:
        """Clear a run whose losses stayed finite."""
        if not np.isfinite(losses.values).all():
            raise NotApplicable("needs the step that went wrong, run again")
        return None

    def _broken_by_update(self, origin: OriginFacts) -> Finding:
        rate = "" if origin.learning_rate is None else f" The learning rate was {origin.learning_rate:.3g}."
        return self.found(
            f"After step {origin.step} {nonfinite.parameters(origin)} held NaN or infinity, although the "
            "gradient that the optimizer stepped on was finite. So it is the update, or what the loop does to the "
            f"weights after it, that broke them.{rate} Every loss from here on is NaN.",
            fix="lower the learning rate, give the optimizer an eps above 0 that its dtype can hold, and look for "
            "weights that are scaled or divided by hand after the step",
            evidence=nonfinite.evidence(origin),
            step=origin.step,
        )

    def _broken_weights(self, origin: OriginFacts) -> Finding:
        finite = origin.loss is not None and math.isfinite(origin.loss)
        loss = (
            " The loss was finite all the same: an activation such as relu may take NaN for 0." if finite else ""
        )
        return self.found(
            f"After step {origin.step} at the latest, {nonfinite.parameters(origin)} held NaN or infinity."
            f"{loss} What made them so is not known: {origin.reason}.",
            fix="watch with every=1, and look for NaN in the data and at the learning rate: one step on a loss or "
            "a gradient that is not finite is enough",
            evidence=nonfinite.evidence(origin) | {"loss": None if origin.loss is None else str(origin.loss)},
            step=origin.step,
        )


def _origin(
    loss: LossFacts, outputs: OutputFacts | None, batch: BatchFacts | None, rows: tuple[int, ...]
) -> tuple[str, str]:
    """Say where finite numbers end, and what to change there."""
    labels = None if batch is None else batch.class_labels
    if batch is not None and labels is not None and not labels.size:
        return (
            f"All of its labels are {batch.ignore_index}, which the loss leaves out, so it averages over nothing.",
            "leave out batches in which no label counts, and look for truncation that cuts the labels off",
        )
    examples = _listed(rows, batch.size if batch else None)
    if outputs is not None and outputs.non_finite_rows:
        return (
            f"The model's output is NaN or infinite already, for {examples}: it starts in the model or its "
            "input, not in the loss.",
            "find the first layer whose output is not finite: look for a division, log, sqrt or exp without a "
            "guard, and for half precision that overflows",
        )
    known = "Whether the model's output was finite is not known."
    if outputs is not None:
        known = "The model's output is finite, so it starts in the loss or the labels."
    if rows:
        verb = "gives it on its" if len(rows) == 1 else "give it on their"
        known += f" {examples[0].upper()}{examples[1:]} {verb} own."
    elif loss.non_finite_rows is not None:
        return (
            f"{known} No example gives it on its own: it appears where they are averaged.",
            "average in float32, and look at what the sum is divided by",
        )
    return (
        known,
        "look for a label that the loss cannot take, and for a log, a division or a square root without a guard",
    )


def _listed(rows: tuple[int, ...], size: int | None) -> str:
    """Say which examples: ``3 of the 8 examples (1, 4 and 6, counted from 0)``."""
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
    return f"{counted} ({', '.join(named[:-1])} and {named[-1]}, counted from 0)"
