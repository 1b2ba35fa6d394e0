"""See `ClassImbalance`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import DatasetFacts, LossFacts, OutputFacts

# Ours: from here on the answer that never changes scores what many would report as a good accuracy.
MAJORITY_SHARE = 0.9
# Ours: where a class really has 75% of the rows, 50 rows show 90% of it about once in 100 times.
MIN_ROWS = 50


class ClassImbalance(Rule):
    """One class is so common that always answering it looks like success.

    ## What it does
    Counts the labels of rows taken from all over the dataset, and speaks up when one class has nine tenths
    of them and nothing makes up for it: neither class weights in the loss nor a sampler that draws rare rows
    more often.

    ## Why it is bad
    Cross entropy counts every row alike, so the quickest way down is to answer the common class. Accuracy
    then stands at that class's share from the first epoch on, which looks like a working model and is none.

    ## Example
    ```python
    loss_fn = torch.nn.CrossEntropyLoss()    # 950 rows of class 0, 50 of class 1
    ```

    ## Instead
    ```python
    loss_fn = torch.nn.CrossEntropyLoss(weight=torch.tensor([1000 / (2 * 950), 1000 / (2 * 50)]))
    # and judge by balanced accuracy or by F1 of the rare class, not by accuracy
    ```

    ## Thresholds
    A share of 0.9 (ours): from there on the constant answer scores what is often reported as a good
    accuracy. At least 50 rows (ours): a class with three quarters of the data shows 90% of them about once
    in 100 times.

    ## Known problems
    The share may be what the world looks like, and a model that ranks well needs no weights; then judge it
    by a metric that a constant answer cannot satisfy, and ignore this rule. Where something may make up for the
    imbalance and cannot be seen, it is a note: in Keras before `fit`, which is told of class weights only then
    (`diagnose run` sees them); with a loss of your own, in PyTorch if the batch looked at happens to hold one
    class only; with a `Trainer` that draws its rows in a way of its own. Rows from the beginning only are not
    judged: they may be sorted.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" (what would chance score);
    scikit-learn's documentation of `sklearn.utils.class_weight.compute_class_weight` ("balanced") and of
    `sklearn.metrics.balanced_accuracy_score`.
    """

    severity = "warning"
    causes = ("constant-predictions",)

    @check
    def from_dataset(self, dataset: DatasetFacts, loss: LossFacts, outputs: OutputFacts) -> Finding | None:
        """Count the labels of the rows that were read."""
        labels = dataset.labels
        if labels is None or not np.issubdtype(labels.dtype, np.integer) or outputs.num_classes is None:
            raise NotApplicable("needs one class label a row")
        if loss.kind != "cross_entropy":
            raise NotApplicable("needs a cross-entropy loss")
        if labels.size < MIN_ROWS:
            raise NotApplicable(f"needs the labels of at least {MIN_ROWS} rows")
        if not dataset.spread_out:
            raise NotApplicable("needs rows from all over the dataset: the first ones may be sorted by label")
        if loss.class_weights or dataset.weighted_sampling:
            return None
        classes, counts = np.unique(labels, return_counts=True)
        share = float(counts.max() / labels.size)
        if len(classes) == 1 or share < MAJORITY_SHARE:  # one class alone is another rule's: single-class-labels
            return None
        majority = int(classes[counts.argmax()])
        names = dataset.label_names
        unknown = loss.class_weights is None or dataset.weighted_sampling is None
        called = f" ({names[majority]})" if names is not None and 0 <= majority < len(names) else ""
        return self.found(
            f"{counts.max()} of the {labels.size} rows read carry label {majority}{called}. A model that "
            f"always gives that answer scores an accuracy of {share:.2f} without having looked at its input.",
            fix=(
                f"{'if nothing makes up for it yet, ' if unknown else ''}weigh the classes: "
                "torch.nn.CrossEntropyLoss(weight=...), or model.fit(..., class_weight=...) in Keras; and judge "
                "by balanced accuracy, not by accuracy"
            ),
            evidence={
                "counts": {str(label): int(count) for label, count in zip(classes, counts, strict=True)},
                "majority_label": majority,
                "majority_share": round(share, 4),
                "rows_read": int(labels.size),
            },
            severity="note" if unknown else None,
        )
