"""See `ClassImbalance`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import LossFacts, OutputFacts

# Our choice: above it, a constant prediction reaches what is often reported as a good accuracy.
MAJORITY_SHARE = 0.9
# Our choice: a class with 75% of the rows makes up 90% of 50 random ones about once in 100 times.
MIN_ROWS = 50
UNEVEN = 2.0  # times the labels of the rarest class, and times its weight; a smaller ratio changes little
LIKE = 0.15  # in log units: how far weights may be from the class shares, in addition to chance
CHANCE = 3.0  # standard errors
FEWEST = 10  # labels of each class
ROUNDED = 0.01  # of a sum that balanced weights have whatever their order
FIX = {
    "torch": "weight the classes with torch.nn.CrossEntropyLoss(weight=...), and evaluate with balanced accuracy",
    "keras": "weight the classes with model.fit(..., class_weight=...), and evaluate with balanced accuracy",
}


class ClassImbalance(Rule):
    """One class is so common that always predicting it looks like success.

    ## What it does
    Counts the labels of rows drawn from the whole dataset. Reports a class with at least 90% of the labels, unless
    class weights in the loss or a sampler compensate for it. Also reports class weights that grow with the label
    count, and balanced weights in the wrong order, such as weights computed from `value_counts()`, which sorts by
    frequency instead of class id.

    ## Why it is bad
    Cross entropy weights all rows equally, so the fastest way to lower the loss is to always predict the common
    class. From the first epoch on, accuracy equals the share of that class, and the model seems to work.

    ## Example
    ```python
    loss_fn = torch.nn.CrossEntropyLoss()    # 950 rows of class 0, 50 of class 1
    ```

    ## Instead
    ```python
    weight = torch.tensor([1000 / (2 * 950), 1000 / (2 * 50)])
    loss_fn = torch.nn.CrossEntropyLoss(weight=weight)
    # and judge by balanced accuracy or by F1 of the rare class, not by accuracy
    ```

    ## Thresholds
    At least 50 rows with a label must have been read, and one class must have at least 90% of the labels. Negative
    labels mark rows without a label.

    Class weights that grow with the label counts are reported if two conditions hold:

    - The weights are proportional to the label counts, to within 15% plus sampling error.
    - The most common class has at least twice as many labels as the rarest class, and at least twice its weight.

    Weights are reported as balanced but in the wrong order if three conditions hold:

    - The inverses of the weights add up to the number of classes, the number of rows, or 1 (to within 1%).
    - The sorted inverses of the weights are proportional to the sorted label counts.
    - At least one class has at least twice as many labels as its weight implies.

    ## Known problems
    If the imbalance is real, ignore this rule, and judge the model by a metric on which a constant prediction
    scores badly.

    The finding is only a note if something that the rule cannot see may compensate for the imbalance:

    - in Keras before training, class weights that are passed to `fit` later (`diagnose run` sees them)
    - a custom loss
    - a PyTorch batch that contains only one class
    - a `Trainer` with its own sampler
    - a model with a single output, which is often evaluated by how it ranks the rows

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" (how well a random model would score);
    scikit-learn's documentation for `sklearn.utils.class_weight.compute_class_weight` ("balanced") and
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
        labels = labels[labels >= 0]  # -1 marks rows without a label
        if labels.size < MIN_ROWS:
            raise NotApplicable(f"needs the labels of at least {MIN_ROWS} rows")
        if not dataset.spread_out:
            raise NotApplicable("needs rows from the whole dataset: the first rows may be sorted by label")
        if loss.class_weights or dataset.weighted_sampling:
            return None
        classes, counts = np.unique(labels, return_counts=True)
        share = float(counts.max() / labels.size)
        if len(classes) == 1 or share < MAJORITY_SHARE:  # single-class-labels reports one class alone
            return None
        majority = int(classes[counts.argmax()])
        names = dataset.label_names
        unknown = loss.class_weights is None or dataset.weighted_sampling is None
        called = f" ({names[majority]})" if names is not None and 0 <= majority < len(names) else ""
        return self.found(
            f"Of the {labels.size} rows read, {counts.max()} have label {majority}{called}. A model that always "
            f"predicts this label has an accuracy of {share:.2f} without using its input.",
            fix={
                library: f"if nothing compensates for the imbalance yet, {fix}" if unknown else fix
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

    @check
    def from_weights(self, dataset: DatasetFacts, loss: LossFacts) -> Finding | None:
        """Compare the class weights with the class counts."""
        labels = dataset.labels
        if loss.weights is None or labels is None or not np.issubdtype(labels.dtype, np.integer):
            raise NotApplicable("needs class weights in the loss, and one class label per row")
        if not dataset.spread_out or dataset.weighted_sampling is not False:
            raise NotApplicable("needs rows from the whole dataset, sampled without weights")
        weights = np.array(loss.weights)
        if labels.min() < 0 or labels.max() >= len(weights):
            raise NotApplicable("needs a weight for each class")
        counts = np.bincount(labels, minlength=len(weights)).astype(float)
        if counts.min() < FEWEST or weights.min() <= 0:
            raise NotApplicable(f"needs at least {FEWEST} labels for each class that has a weight")
        evidence = {"counts": counts.tolist(), "weights": list(loss.weights)}
        rarest, most = int(counts.argmin()), int(counts.argmax())
        even = counts[most] < UNEVEN * counts[rarest] or weights[most] < UNEVEN * weights[rarest]
        apart = np.abs(np.log(weights / weights[most]) - np.log(counts / counts[most]))
        if even or (apart > LIKE + CHANCE * np.sqrt(1 / counts + 1 / counts[most])).any():
            return self._in_another_order(counts, weights, dataset.size, evidence)
        return self.found(
            "The class weights are proportional to the class counts instead of inversely proportional: class "
            f"{most} has {counts[most] / counts[rarest]:.3g} times as many labels as class {rarest}, and "
            f"{weights[most] / weights[rarest]:.3g} times its weight. The rare class has even less "
            "influence on the loss than without weights.",
            fix={
                "torch": "weight = counts.sum() / (len(counts) * counts)  # the inverse of the frequencies",
                "keras": "class_weight = {label: len(y) / (len(counts) * n) for label, n in enumerate(counts)}  # "
                "the inverse of the frequencies",
            },
            evidence=evidence,
        )

    def _in_another_order(
        self, counts: Array, weights: Array, size: int | None, evidence: dict[str, list[float]]
    ) -> Finding | None:
        """Look for balanced weights that belong to other classes."""
        total, classes = float((1 / weights).sum()), len(weights)
        if not any(abs(total - known) <= ROUNDED * known for known in (classes, 1, size) if known):
            return None  # costs of the user's own
        meant = counts.sum() / (weights * total)  # the counts that these weights balance
        chance = LIKE + CHANCE * np.sqrt(1 / counts)
        order = counts.argsort()
        if (np.abs(np.log(np.sort(meant) / counts[order])) > chance[order]).any():
            return None
        beyond = np.log(counts / meant) - chance
        worst = int(beyond.argmax())
        if beyond[worst] <= 0 or counts[worst] < UNEVEN * meant[worst]:
            return None
        share, fits = counts[worst] / counts.sum(), meant[worst] / counts.sum()
        return self.found(
            "The class weights are balanced, but not in the order of the class ids: class "
            f"{worst} has {share:.1%} of the labels, but its weight of {weights[worst]:.3g} is right for a class "
            f"with {fits:.1%} of the labels. Frequent classes get the weights of rare classes.",
            fix={
                "torch": "counts = torch.bincount(labels)  # by class id; value_counts() sorts by frequency",
                "keras": "counts = np.bincount(labels)  # by class id; value_counts() sorts by frequency",
            },
            evidence=evidence,
        )
