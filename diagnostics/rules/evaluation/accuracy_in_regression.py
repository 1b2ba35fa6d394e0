"""See `AccuracyInRegression`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import BatchFacts, LossFacts

MIN_ROWS = 8
FRACTIONS = 0.8  # of the targets: fewer, and some may be classes, or counts


class AccuracyInRegression(Rule):
    """An accuracy is the metric of a regression.

    ## What it does
    Looks at the targets of a batch under a mean squared or absolute error, where the model is compiled with an
    accuracy.

    ## Why it is bad
    An accuracy counts the rows whose prediction equals the target. For one output, Keras rounds the prediction to
    0 or 1 before, so only targets that are exactly 0 or 1 can ever count. The number stays near 0 for the best of
    models, does not change from epoch to epoch, and whoever stops early or keeps the best epoch by it keeps any.

    ## Example
    ```python
    model.compile("adam", loss="mse", metrics=["accuracy"])     # targets are prices
    ```

    ## Instead
    ```python
    model.compile("adam", loss="mse", metrics=["mae"])
    ```

    ## Thresholds
    At least 8 rows with one target each, of which at least 80% are no whole numbers, and 8 different ones: fewer
    may be smoothed classes (our choice).

    ## Known problems
    Targets that are whole numbers, as years and counts are, are not judged: they may be classes. Several outputs,
    as of an autoencoder, are not judged either.

    ## Sources
    Keras' documentation of `compile` ("accuracy" is turned into one of three metrics of classes).
    """

    severity = "warning"

    @check
    def from_batch(self, batch: BatchFacts, loss: LossFacts) -> Finding | None:
        """Count the targets that no class can equal."""
        labels = batch.labels
        if loss.kind not in ("mean_squared_error", "mean_absolute_error") or loss.accuracy is None:
            raise NotApplicable("needs a mean squared or absolute error, and the metrics of the model")
        if labels is None or labels.size != batch.size or labels.size < MIN_ROWS:
            raise NotApplicable(f"needs one target a row, of at least {MIN_ROWS} rows")
        fractions = int((labels != np.round(labels)).sum())
        if not loss.accuracy or fractions < FRACTIONS * labels.size or len(np.unique(labels)) < MIN_ROWS:
            return None
        return self.found(
            f"A metric of the model is an accuracy, and {fractions} of the {labels.size} targets in this batch "
            f"are no whole numbers (from {labels.min():.4g} to {labels.max():.4g}). An accuracy counts the rows "
            "whose prediction is the right class, so these can never count: it stays near 0, however good the "
            "model is.",
            fix={
                "torch": "the mean absolute error as the metric",
                "keras": 'model.compile(..., metrics=["mae"])',
            },
            evidence={"fractions": fractions, "targets": int(labels.size)},
        )
