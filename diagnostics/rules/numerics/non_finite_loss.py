"""See `NonFiniteLoss`."""

from __future__ import annotations

import math

from diagnostics.facts import BatchFacts, LossFacts, OutputFacts
from diagnostics.finding import Finding
from diagnostics.rule import Rule
from diagnostics.shared_trait import shared_trait

NAMED = 8  # examples named in the message; the evidence holds them all


class NonFiniteLoss(Rule):
    """The loss is NaN or infinite.

    ## What it does
    Looks at the loss of one batch, and then for where it comes from: whether the model's outputs are still
    finite, which examples give such a loss on their own, and what those examples share that no other does: a
    non-finite or constant input, a label, the value of a column, a range.

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
    Before training, one batch is looked at; a rare example is found when it arrives. One example alone always
    has something that no other has, so no label and no range is named for it. In a small batch with many
    columns a range is no evidence, and is not named either. Batch norm spreads one bad example to all others,
    and then nothing tells them apart.

    ## Sources
    TensorFlow's documentation of `tf.nn.sparse_softmax_cross_entropy_with_logits` (labels out of range give
    NaN on a GPU); PyTorch issue 75181 (cross entropy is NaN where every label is ignored).
    """

    severity = "error"

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
