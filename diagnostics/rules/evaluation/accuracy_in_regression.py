"""See `AccuracyInRegression`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import TargetHistory
from diagnostics.facts.pipeline import BatchFacts, LossFacts
from diagnostics.rules.shared.learnable import is_learnable

MIN_ROWS = 8
FRACTIONS = 0.8  # of the targets: if there are fewer, some may be classes or counts
AS_GOOD = 0.15  # of random orders: a real order, of grades or counts, is easier to predict than nearly all others
MORE_WRONG = 0.15  # of the rows, by the rounded numbers
LEFT = 0.05  # of the loss of a constant prediction: below, the model has learned the classes all the same


class AccuracyInRegression(Rule):
    """A classification problem is treated as regression, or a regression model is evaluated with accuracy.

    ## What it does
    Checks the targets of a batch if the loss is a mean squared or absolute error and the model is compiled with
    an accuracy metric.

    If the targets of such a loss are whole numbers with only a few different values, the rule also tests whether
    their order means anything. On half of the sampled training rows, it fits linear and RBF (radial basis
    function) models to the targets as classes, to the targets as numbers, and to 50 random renumberings of the
    classes. It then compares how well these models predict the other half.

    ## Why it is bad
    With one output and a squared error, the prediction for a row that may be class 0 or class 8 is class 4. Class
    numbers that were assigned in no particular order are hard to predict as numbers, even if the classes are easy
    to tell apart.

    Accuracy counts the rows whose prediction equals the target. For a single output, Keras first rounds the
    prediction to 0 or 1, so only targets that are exactly 0 or 1 can match. The accuracy stays near 0 even for a
    perfect model. Early stopping or checkpointing by accuracy picks an arbitrary epoch.

    ## Example
    ```python
    model.compile("adam", loss="mse", metrics=["accuracy"])     # targets are prices

    loss = nn.MSELoss()(model(x).squeeze(1), topics.float())    # topics are class numbers
    ```

    ## Instead
    ```python
    model.compile("adam", loss="mse", metrics=["mae"])

    loss = nn.CrossEntropyLoss()(model(x), topics)              # one output per class
    ```

    ## Thresholds
    There must be at least 8 rows with one target each. At most 20% of the targets may be whole numbers, and the
    targets must have at least 8 different values.

    For class numbers, all of these conditions must hold:

    - There are 4 to 50 different whole numbers and at least 100 different rows.
    - In the second half of the run, the training loss is at least 5% of a constant prediction's loss.
    - The error rate of the fit to the classes is at most 70% of a constant prediction's error rate, and at least
      five standard errors below it.
    - With its predictions rounded, the fit to the numbers has an error rate at least 15 percentage points higher
      than the fit to the classes.
    - At least 15% of the random renumberings are at least as easy to predict as the numbers themselves. Ordinal
      labels such as grades, counts and months are easier to predict in their natural order than in almost any
      random order.

    ## Known problems
    Class numbers that happen to be in a useful order are not reported. Models with several outputs are not
    checked.

    ## Sources
    Keras' documentation for `compile` ("accuracy" is converted to one of three classification metrics).
    """

    severity = "warning"
    causes = ("not-learning",)

    @check
    def from_course(self, targets: TargetHistory) -> Finding | None:
        """Look for class numbers whose order means nothing."""
        numbered = targets.numbered
        if numbered is None:
            raise NotApplicable(
                "needs regression targets with only a few integer values, and at least 100 distinct rows"
            )
        late = len(targets.losses) // 2
        if targets.losses[late:].sum() < LEFT * targets.constant_losses[late:].sum():
            return None
        fit = numbered.fit
        if not is_learnable(fit) or numbered.rounded < fit.error + MORE_WRONG:
            return None
        if numbered.as_good < AS_GOOD * numbered.orders:
            return None
        return self.found(
            f"The loss treats the targets as quantities, but they are the indices of {numbered.classes} "
            f"classes in no meaningful order: {numbered.as_good} of {numbered.orders} random renumberings of the "
            f"classes are at least as easy to predict. A simple {'linear' if fit.linear else 'radial-basis'} "
            f"model fitted to the classes of {fit.fitted} training rows predicts {1 - fit.error:.0%} of "
            f"{fit.predicted} others correctly; fitted to the class indices, with its predictions rounded, it "
            f"gets {1 - numbered.rounded:.0%} right.",
            fix={
                "torch": (
                    f"nn.Linear(..., {numbered.classes})  # as the last layer: one output per class",
                    "loss = nn.CrossEntropyLoss()(logits, targets.long())",
                ),
                "keras": (
                    f'Dense({numbered.classes}, "softmax")  # as the last layer: one output per class',
                    'model.compile(..., loss="sparse_categorical_crossentropy")',
                ),
            },
            evidence={
                "classes": numbered.classes,
                "orders": numbered.orders,
                "as_good": numbered.as_good,
                "wrong_of_classes": fit.error,
                "wrong_of_constant": fit.constant_error,
                "wrong_of_numbers": numbered.rounded,
            },
        )

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
