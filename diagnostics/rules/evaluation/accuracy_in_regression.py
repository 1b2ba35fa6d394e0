"""See `AccuracyInRegression`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import BatchFacts, LossFacts

MIN_ROWS = 8
FRACTIONS = 0.8  # of the targets: if there are fewer, some may be classes or counts


class AccuracyInRegression(Rule):
    """Accuracy is used as the metric for a regression.

    ## What it does
    Checks the targets of a batch if the loss is a mean squared or absolute error and the model is compiled with
    an accuracy metric.

    ## Why it is bad
    Accuracy counts the rows whose prediction equals the target. For a single output, Keras first rounds the
    prediction to 0 or 1, so only targets that are exactly 0 or 1 can match. The accuracy stays near 0 even for a
    perfect model. Early stopping or checkpointing by accuracy picks an arbitrary epoch.

    ## Example
    ```python
    model.compile("adam", loss="mse", metrics=["accuracy"])     # targets are prices
    ```

    ## Instead
    ```python
    model.compile("adam", loss="mse", metrics=["mae"])
    ```

    ## Thresholds
    There must be at least 8 rows with one target each. At least 80% of the targets must not be whole numbers, and
    the targets must have at least 8 different values.

    ## Known problems
    Targets that are whole numbers, such as years and counts, are not checked, because they may be classes. Models
    with several outputs are not checked either.

    ## Sources
    Keras' documentation for `compile` ("accuracy" is converted to one of three classification metrics).
    """

    severity = "warning"

    @check
    def from_batch(self, batch: BatchFacts, loss: LossFacts) -> Finding | None:
        """Count the targets that no class can equal."""
        labels = batch.labels
        if loss.kind not in ("mean_squared_error", "mean_absolute_error") or loss.accuracy is None:
            raise NotApplicable("needs a mean squared error or mean absolute error loss, and the model's metrics")
        if labels is None or labels.size != batch.size or labels.size < MIN_ROWS:
            raise NotApplicable(f"needs one target per row, and at least {MIN_ROWS} rows")
        fractions = int((labels != np.round(labels)).sum())
        if not loss.accuracy or fractions < FRACTIONS * labels.size or len(np.unique(labels)) < MIN_ROWS:
            return None
        targets = f"of the {labels.size} targets in this batch"
        few = f"{fractions} {targets} are not whole numbers"
        return self.found(
            "The model's metrics include accuracy, but "
            f"{few if fractions < labels.size else f'none {targets} is a whole number'} "
            f"(they range from {labels.min():.4g} to {labels.max():.4g}). Accuracy counts a row as correct only "
            "if its target equals the predicted class, which is a whole number. So accuracy stays near 0, "
            "however good the model is.",
            fix={
                "torch": "use the mean absolute error as the metric",
                "keras": 'model.compile(..., metrics=["mae"])',
            },
            evidence={"fractions": fractions, "targets": int(labels.size)},
        )
