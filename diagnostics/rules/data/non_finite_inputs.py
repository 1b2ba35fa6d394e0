"""See `NonFiniteInputs`."""

from __future__ import annotations

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.array import Array
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.pipeline import BatchFacts, GradientFacts, LossFacts
from diagnostics.text.join import among, capitalized, listed
from diagnostics.text.nonfinite import examples

MAX_ROWS_NAMED = 8  # in the message; the evidence holds every row
FIX = (
    "find these rows with ~np.isfinite(values), and drop them",
    "fill the missing values before training",
)


class NonFiniteInputs(MessageRule):
    """Inputs or targets contain NaN or infinity, and the loss or a gradient is not finite.

    ## What it does
    If the loss of a batch or the gradient of a weight is NaN or infinite, the rule searches the inputs and
    floating-point targets of that batch for such values and names the rows. Infinities in an input whose name
    contains `mask` or `bias` are ignored, because attention masks use them.

    ## Why it is bad
    NaN propagates: one bad row makes the batch's loss NaN, the loss makes every gradient NaN, and the first
    optimizer step makes every weight NaN. On a CPU, TensorFlow may turn NaN into 0 in a dense layer with ReLU:
    `fit` then reports a finite loss that stays at chance level, while the weights of the first layer are NaN.

    ## Example
    ```python
    # income is missing in two rows
    features = torch.tensor(table[["age", "income"]].values)
    loss = mean_squared_error(model(features), targets)
    ```

    ## Instead
    ```python
    table = table.dropna(subset=["age", "income"])
    features = torch.tensor(table[["age", "income"]].values)
    loss = mean_squared_error(model(features), targets)
    ```

    ## Thresholds
    None: a single NaN or infinity is enough.

    ## Known problems
    If the loss and the gradients are finite, nothing is reported: the loss may mask unknown targets, and the model
    may replace missing inputs. Before training, only one batch is checked, so a bad row elsewhere is found only
    when the model trains on it.

    ## Sources
    IEEE 754: an operation on a NaN gives a NaN. The Keras version of the Hugging Face course, chapter 8,
    "Debugging the training pipeline", on how a NaN spreads.
    """

    severity = "error"
    causes = (*NAN, *NO_LEARNING)

    @check
    def from_loss(self, batch: BatchFacts, loss: LossFacts) -> Finding | None:
        """Look for rows that made the loss of a batch NaN or infinite."""
        import numpy as np

        rows = _rows(batch)
        if np.isfinite(loss.value) or not rows or not _explain(_culprits(rows), loss):
            return None
        return self._bad(
            batch,
            rows,
            loss,
            f", and the loss is {'NaN' if np.isnan(loss.value) else 'infinite'}. One optimizer step makes every "
            "weight NaN.",
        )

    @check
    def from_gradients(self, batch: BatchFacts, loss: LossFacts, gradients: GradientFacts) -> Finding | None:
        """Look for bad rows if the loss is finite but a gradient is not: a ReLU may turn NaN into 0."""
        import numpy as np

        rows = _rows(batch)
        reached = [name for name, norm in gradients.norms.items() if not np.isfinite(norm)]
        if not np.isfinite(loss.value) or not rows or not reached:
            return None
        return self._bad(
            batch,
            rows,
            loss,
            f". The loss is still {loss.value:.4g}, because an operation turns NaN into a finite value, but the "
            f"gradient of {reached[0]} is not finite. One optimizer step makes that weight NaN, and the loss may "
            "not reveal it.",
        )

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Check whether the first NaN of a watched run came from its batch."""
        if origin.kind != "input":
            return None
        places = ", ".join(f"input {name}" if name.isdigit() else name for name in origin.inputs) or "the input"
        return self.found(
            f"The batch at step {origin.step} has NaN or infinity in {places}.{examples(origin)} The weights were "
            "finite before this step. One optimizer step makes every weight NaN.",
            fix=FIX,
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
        places = " and ".join(
            f"input {name}" if name.isdigit() else "the target" if name == "target" else name for name in rows
        )
        one = len(culprits) == 1
        named = listed(culprits, most=MAX_ROWS_NAMED)
        return self.found(
            f"{capitalized(among(len(culprits), batch.size, 'example'))} in this batch "
            f"{'has' if one else 'have'} NaN or infinity in {places} ({'row' if one else 'rows'} {named}, counted "
            f"from 0){harm}",
            fix=FIX,
            evidence={
                "rows": rows,
                "examples": len(culprits),
                "batch_size": batch.size,
                "loss": str(loss.value),  # JSON has no NaN
            },
        )


def _rows(batch: BatchFacts) -> dict[str, list[int]]:
    """Return the bad rows of each input and target that has any."""
    import numpy as np

    arrays = dict(batch.inputs)
    if batch.labels is not None:
        arrays[batch.target_name] = batch.labels
    arrays = {name: a for name, a in arrays.items() if a.ndim and np.issubdtype(a.dtype, np.inexact)}
    if not arrays:
        raise NotApplicable("needs floating-point inputs or targets")
    rows = {name: _bad_rows(name, array) for name, array in arrays.items()}
    return {name: numbers for name, numbers in rows.items() if numbers}


def _culprits(rows: dict[str, list[int]]) -> list[int]:
    return sorted({number for numbers in rows.values() for number in numbers})


def _bad_rows(name: str, array: Array) -> list[int]:
    import numpy as np

    masks = "mask" in name or "bias" in name
    bad = np.isnan(array) if masks else ~np.isfinite(array)
    return [int(i) for i in np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))]


def _explain(culprits: list[int], loss: LossFacts) -> bool:
    """Return whether these rows can be the cause: one has a non-finite loss, if that is known per row."""
    return loss.non_finite_rows is None or bool(set(culprits) & set(loss.non_finite_rows))
