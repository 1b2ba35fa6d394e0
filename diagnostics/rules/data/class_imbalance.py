"""See `ClassImbalance`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import Array, LossFacts, OutputFacts

# Our choice: from here on a constant prediction has what is often reported as a good accuracy.
MAJORITY_SHARE = 0.9
# Our choice: if a class has 75% of the rows, 50 random rows show 90% of it about once in 100 times.
MIN_ROWS = 50
RARER, LIGHTER = 3.0, 2.0  # so many times fewer rows of a class, each of which counts so many times less
ALONG = 0.9  # correlation of the logarithms of weights and counts: not one odd weight among many classes
FIX = {
    "torch": "weight the classes, torch.nn.CrossEntropyLoss(weight=...), and judge by balanced accuracy",
    "keras": "weight the classes, model.fit(..., class_weight=...), and judge by balanced accuracy",
}


class ClassImbalance(Rule):
    """One class is so common that predicting it always looks like success.

    ## What it does
    Counts the labels of rows from the whole dataset, and reports when one class has nine tenths of them and
    nothing compensates for it: neither class weights in the loss nor a sampler that draws rare rows more often.
    Where there are class weights, it compares them with the counts: they should not favour the common classes.

    ## Why it is bad
    Cross entropy weights all rows equally, so the fastest way to lower it is to predict the common class.
    Accuracy then equals that class's share from the first epoch on, which looks like a working model.

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
    A share of 0.9 (our choice): from there on a constant prediction has what is often reported as a good
    accuracy. At least 50 rows (our choice): a class with three quarters of the data shows 90% of them about once
    in 100 times. Weights are the wrong way round if the rarest class has at most a third of the rows of the most
    common one and weighs at most half as much, and weights and counts correlate by 0.9 or more on a logarithmic
    scale (our choice). Classes with a weight of 0 are left out on purpose.

    ## Known problems
    The share may be the true one, and a model that ranks well needs no weights; then judge it by a metric that a
    constant prediction cannot satisfy, and ignore this rule. It is a note where something unknown may compensate
    for the imbalance: in Keras before `fit`, which gets the class weights (`diagnose run` sees them); with a
    custom loss, and in PyTorch if the checked batch happens to hold only one class; with a `Trainer` that has its
    own sampler; and with a single output, which is often made to rank the
    rows and judged by that. Rows from the beginning alone are not judged: they may be sorted.

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
            raise NotApplicable("needs one class label per row")
        if loss.kind not in ("cross_entropy", "binary_cross_entropy"):
            raise NotApplicable("needs a cross-entropy loss")
        if labels.size < MIN_ROWS:
            raise NotApplicable(f"needs the labels of at least {MIN_ROWS} rows")
        if not dataset.spread_out:
            raise NotApplicable("needs rows from the whole dataset: the first ones may be sorted by label")
        classes, counts = np.unique(labels, return_counts=True)
        if loss.weights is not None and not dataset.weighted_sampling:
            return self._of_weights(loss.weights, classes, counts)
        if loss.class_weights or dataset.weighted_sampling:
            return None
        share = float(counts.max() / labels.size)
        if len(classes) == 1 or share < MAJORITY_SHARE:  # one class alone is another rule's: single-class-labels
            return None
        majority = int(classes[counts.argmax()])
        names = dataset.label_names
        unknown = loss.class_weights is None or dataset.weighted_sampling is None
        called = f" ({names[majority]})" if names is not None and 0 <= majority < len(names) else ""
        return self.found(
            f"{counts.max()} of the {labels.size} rows read have label {majority}{called}. A model that always "
            f"predicts it has an accuracy of {share:.2f} without using its input.",
            fix={
                library: f"if nothing compensates for it yet: {fix}" if unknown else fix
                for library, fix in FIX.items()
            },
            evidence={
                "counts": {str(label): int(count) for label, count in zip(classes, counts, strict=True)},
                "majority_label": majority,
                "majority_share": round(share, 4),
                "rows_read": int(labels.size),
            },
            severity="note" if unknown or outputs.is_single else None,
        )

    def _of_weights(self, weights: tuple[float, ...], classes: Array, counts: Array) -> Finding | None:
        """Compare the weights with the counts of the classes."""
        if int(classes.max()) >= len(weights) or int(classes.min()) < 0:
            return None
        given = np.asarray(weights)[classes]
        classes, counts, given = classes[given > 0], counts[given > 0], given[given > 0]
        if len(classes) < 2:
            return None
        common, rare = int(counts.argmax()), int(counts.argmin())
        if counts[common] < RARER * counts[rare] or given[common] < LIGHTER * given[rare]:
            return None
        if float(np.corrcoef(np.log(counts), np.log(given))[0, 1]) < ALONG:
            return None
        share = given[rare] * counts[rare] / (given[common] * counts[common])
        return self.found(
            f"The class weights are the wrong way round: of the {counts.sum()} rows read, class {classes[common]} "
            f"has {counts[common]} and a weight of {given[common]:.4g}, and class {classes[rare]} has "
            f"{counts[rare]} and a weight of {given[rare]:.4g}. All rows of class {classes[rare]} together count "
            f"{share:.2g} times those of class {classes[common]}: the model loses almost nothing by never "
            "predicting it.",
            fix={
                "torch": "weight = counts.sum() / (len(counts) * counts)  # the inverse of the frequencies",
                "keras": "class_weight = {label: len(y) / (len(counts) * n) for label, n in enumerate(counts)}  # "
                "the inverse of the frequencies",
            },
            evidence={
                "counts": {str(label): int(count) for label, count in zip(classes, counts, strict=True)},
                "weights": list(weights),
                "rows_read": int(counts.sum()),
            },
        )
