"""See `NonFiniteInputs`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.pipeline import Array, BatchFacts, GradientFacts, LossFacts
from diagnostics.text.nonfinite import examples

MAX_ROWS_NAMED = 8  # a message is read, not searched: the evidence holds every row


class NonFiniteInputs(Rule):
    """A number in the inputs or the targets is NaN or infinite, and so is the loss or its gradient.

    ## What it does
    When the loss of a batch, or the gradient of a weight, is NaN or infinite, looks through that batch's inputs
    and floating-point targets for values that are, and names the rows. An infinity in an input that is called a
    mask or a bias is left out: attention is masked that way.

    ## Why it is bad
    Arithmetic carries a NaN along: one bad row makes the batch's loss NaN, the loss makes every gradient
    NaN, and the first optimizer step then makes every weight NaN. From there on no good data can help.

    The loss need not show it. On a CPU, TensorFlow may compute a dense layer and its ReLU in one operation, which
    makes 0 of a NaN: `fit` then reports a finite loss that stays at chance, over a first layer that is NaN.

    ## Example
    ```python
    features = torch.tensor(table[["age", "income"]].values)    # the income is missing in two rows
    loss = mean_squared_error(model(features), targets)
    ```

    ## Instead
    ```python
    table = table.dropna(subset=["age", "income"])
    features = torch.tensor(table[["age", "income"]].values)
    loss = mean_squared_error(model(features), targets)
    ```

    ## Thresholds
    None: one such value is enough.

    ## Known problems
    A NaN may be meant: a target that is not known and that the loss masks, a gap in a time series that the
    model fills. A finite loss with a finite gradient is taken as the proof that it was handled, and nothing is
    reported. One batch is looked at before training, so a bad row elsewhere is found only when it arrives.

    ## Sources
    IEEE 754: an operation on a NaN gives a NaN. The Hugging Face course, chapter 8, "Debugging the training
    pipeline" in its Keras version, on how a NaN spreads.
    """

    severity = "error"
    causes = (*NAN, *NO_LEARNING)
    no_exhibit = "once the rows are named nothing is left to find out; how a NaN spreads has its own exhibit"

    @check
    def from_loss(self, batch: BatchFacts, loss: LossFacts) -> Finding | None:
        """Look for the rows that made the loss of a batch NaN or infinite."""
        rows = _rows(batch)
        if np.isfinite(loss.value) or not rows or not _explain(_culprits(rows), loss):
            return None
        return self._bad(
            batch,
            rows,
            loss,
            f", and the loss is {loss.value}. One step with this gradient makes every weight NaN.",
        )

    @check
    def from_gradients(self, batch: BatchFacts, loss: LossFacts, gradients: GradientFacts) -> Finding | None:
        """Look for them behind a gradient that is not finite, where the loss is: a ReLU may have made NaN a 0."""
        rows = _rows(batch)
        reached = [name for name, norm in gradients.norms.items() if not np.isfinite(norm)]
        if not np.isfinite(loss.value) or not rows or not reached:
            return None
        return self._bad(
            batch,
            rows,
            loss,
            f". The loss is {loss.value:.4g} all the same, because something on the way drops a NaN, but the "
            f"gradient of {reached[0]} is not finite. One step with it makes that weight NaN, and the loss need "
            "not show it.",
        )

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Look whether the first NaN of a watched run came with its batch."""
        if origin.kind != "input":
            return None
        places = ", ".join(f"input {name}" if name.isdigit() else name for name in origin.inputs) or "the input"
        return self.found(
            f"The batch of step {origin.step} holds NaN or infinity in {places}.{examples(origin)} The weights "
            "were finite before it. One step with this gradient makes every weight NaN.",
            fix="leave these rows out or fill the gaps before training: np.isfinite(values) shows them",
            evidence={
                "rows": list(origin.rows),
                "inputs": list(origin.inputs),
                "batch_size": origin.batch_size,
                "batch_fingerprint": origin.batch_fingerprint,
            },
            step=origin.step,
        )

    def _bad(self, batch: BatchFacts, rows: dict[str, list[int]], loss: LossFacts, harm: str) -> Finding:
        culprits = _culprits(rows)
        places = ", ".join(f"input {name}" if name.isdigit() else name for name in rows)
        one = len(culprits) == 1
        named = ", ".join(map(str, culprits[:MAX_ROWS_NAMED])) + (", …" if culprits[MAX_ROWS_NAMED:] else "")
        return self.found(
            f"{len(culprits)} of the {batch.size} examples in this batch {'holds' if one else 'hold'} NaN "
            f"or infinity in {places} ({'row' if one else 'rows'} {named}, counted from 0){harm}",
            fix="leave these rows out or fill the gaps before training: np.isfinite(values) shows them",
            evidence={
                "rows": rows,
                "examples": len(culprits),
                "batch_size": batch.size,
                "loss": str(loss.value),  # JSON has no NaN
            },
        )


def _rows(batch: BatchFacts) -> dict[str, list[int]]:
    """Return the bad rows of each input or target that has any."""
    arrays = dict(batch.inputs)
    if batch.labels is not None:
        arrays[batch.target_name] = batch.labels
    arrays = {name: a for name, a in arrays.items() if a.ndim and np.issubdtype(a.dtype, np.inexact)}
    if not arrays:
        raise NotApplicable("needs inputs or targets that are floating-point numbers")
    rows = {name: _bad_rows(name, array) for name, array in arrays.items()}
    return {name: numbers for name, numbers in rows.items() if numbers}


def _culprits(rows: dict[str, list[int]]) -> list[int]:
    return sorted({number for numbers in rows.values() for number in numbers})


def _bad_rows(name: str, array: Array) -> list[int]:
    masks = "mask" in name or "bias" in name
    bad = np.isnan(array) if masks else ~np.isfinite(array)
    return [int(i) for i in np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))]


def _explain(culprits: list[int], loss: LossFacts) -> bool:
    """Whether these rows can be the cause: if the rows with a bad loss are known, one of them must be here."""
    return loss.non_finite_rows is None or bool(set(culprits) & set(loss.non_finite_rows))
