"""See `SingleClassLabels`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import TargetHistory, Verdicts
from diagnostics.facts.data import DatasetFacts, SampleWeights
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.text.join import listed

# With two equally common classes, 20 random rows all have the same label once in 500,000 times; with a class of
# 80%, once in 90.
MIN_ROWS = 20
IGNORED = (-100, 255)  # labels that losses and datasets of segmentation leave out
# Largest target under binary cross entropy. Targets of 0 and 1 that were divided by 255, as pixels are,
# end at 0.004; by 100, as percentages are, at 0.01.
NEXT_TO_NOTHING = 0.02
# Integers of a regression. After min-max scaling, cutting off the fractions leaves a single 1.
ROUNDED_ROWS = 100
# Cross entropy of answering each row with the mean of all targets: one row in 100,000 of another class costs more.
ANOTHER = 1e-5
# Mean squared deviation up to which targets are equal: float32 rounds values derived from a gradient.
REL_TOLERANCE = 1e-12


KEEP_FRACTIONS = "targets.float()  # from the start, not .long() or .int(), which drop the fractional part"


class SingleClassLabels(MessageRule):
    """All labels that contribute to the loss belong to one class, even though the model has several.

    ## What it does
    Checks whether all labels that were read are the same. The finding is an error if the whole dataset was read,
    and a warning if only a sample or the first rows were read. In Keras, rows whose class has a weight of 0 are
    left out. If each row has several labels, as in a segmentation mask, all of them are compared. In a watched
    run, labels for cross entropy, or for squared error with a single output, are inferred from the gradients at
    the sampled steps.

    The rule also looks for targets that were made nearly equal by mistake:

    - With a squared or absolute error: integer targets that are all 0, except for at most a single 1, because
      numbers between 0 and 1 were cast to integers.
    - With a binary cross entropy: labels of 0 and 1 that were divided by a number such as 255.

    ## Why it is bad
    The model learns to predict that class for every input. The loss falls to zero within a few steps and the
    accuracy rises to 1, so nothing looks wrong. The usual causes are a filter that kept only one class, a label
    column filled with a constant, and reading only the beginning of a file that is sorted by class.

    ## Example
    ```python
    # sorted by label: 1000 negative reviews
    train = load_dataset("imdb", split="train[:1000]")
    ```

    ## Instead
    ```python
    train = load_dataset("imdb", split="train").shuffle(seed=0).select(range(1000))
    ```

    ## Thresholds
    There must be at least 20 rows, or at least 100 if the loss is a squared error. Targets are treated as equal if
    their standard deviation is at most 1e-6, or at most 1e-6 times their mean.

    ## Known problems
    With a single sigmoid output, a finding based on dataset rows is only a note, because adversarial training fits
    a model to one label at a time. In a watched run, the finding is also only a note if all labels are 1, because
    a model that ranks pairs has no other label. With a squared error, events as rare as one in 500 rows look like
    targets that were cast to integers.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" ("check your data again": is one label
    more common than the others?).
    """

    severity = "error"
    causes = ("constant-predictions", "class-imbalance", "unused-classes", "not-learning")

    @check
    def from_dataset(self, dataset: DatasetFacts, outputs: OutputFacts) -> Finding | None:
        """Compare the labels of the rows that were read."""
        import numpy as np

        labels = dataset.labels
        if labels is None or not np.issubdtype(labels.dtype, np.integer):
            raise NotApplicable("needs one class label per row")
        if outputs.num_classes is None or outputs.num_classes < 2:
            raise NotApplicable("needs a model with at least two classes")
        if labels.size < MIN_ROWS:
            raise NotApplicable(f"needs the labels of at least {MIN_ROWS} rows")
        if (labels != labels[0]).any():
            return None
        complete = dataset.size is not None and labels.size >= dataset.size
        if dataset.weighted_sampling is not False and not complete:
            raise NotApplicable(
                "needs the labels of the whole dataset, because a sampler may oversample rare classes"
            )
        label = f"label {int(labels[0])}{_called(labels, dataset.label_names)}"
        return self.found(
            f"{_rows(labels, dataset, complete)} {label}, but the model has {outputs.num_classes} classes. With "
            "only one class, the model can learn only a constant prediction.",
            fix=(
                "shuffle before you select: dataset.shuffle(seed=0).select(range(n)) keeps every class",
                "check how the rows were selected: look for a filter or a constant label column",
            ),
            evidence={
                "label": int(labels[0]),
                "rows_read": int(labels.size),
                "size": dataset.size,
                "spread_out": dataset.spread_out,
                "num_classes": outputs.num_classes,
            },
            severity="note" if outputs.is_single else "error" if complete else "warning",
        )

    @check
    def from_masks(self, dataset: DatasetFacts, outputs: OutputFacts) -> Finding | None:
        """Look at all labels of rows that have several each, such as masks."""
        values = dataset.label_values
        if values is None or outputs.num_classes is None or outputs.num_classes < 2:
            raise NotApplicable
        if dataset.rows_read < MIN_ROWS:
            raise NotApplicable(f"needs the labels of at least {MIN_ROWS} rows")
        counted = [int(value) for value in values if value not in IGNORED]
        if len(counted) != 1:
            return None
        complete = dataset.size is not None and dataset.rows_read >= dataset.size
        return self.found(
            f"Every label in the {dataset.rows_read} rows checked is {counted[0]}, but the model has "
            f"{outputs.num_classes} classes for each position. With only one class, the model can learn only a "
            "constant prediction.",
            fix=(
                "print mask.unique() of one row before and after each transform: a mask that is scaled to the "
                "range 0 to 1 like an image becomes 0 when it is cast to integers",
                "read masks as class indices: torch.from_numpy(np.array(mask)).long(), not to_tensor(mask)",
            ),
            evidence={"label": counted[0], "rows_read": dataset.rows_read, "num_classes": outputs.num_classes},
            severity="error" if complete else "warning",
        )

    @check
    def from_targets(self, targets: TargetHistory, verdicts: Verdicts) -> Finding | None:
        """Check the labels that the loss received in the sampled steps."""
        of_classes = targets.kind == "cross_entropy" and targets.outputs > 1
        single = targets.kind in ("binary_cross_entropy", "mean_squared_error") and targets.outputs == 1
        if not of_classes and not single:
            raise NotApplicable("needs a cross-entropy loss, or a squared-error loss with one output")
        if not verdicts.trained_alone:
            raise NotApplicable("needs a run that trains only this model")
        if targets.kind == "mean_squared_error":
            return self._only_number(targets)
        if of_classes:
            return self._only_class(targets)
        if targets.only_target not in (0.0, 1.0):
            return None
        return self.found(
            f"All labels of the {targets.examples:,} examples in {len(targets.steps)} sampled steps are "
            f"{targets.only_target:g}. With only one class, the model can learn only a constant prediction, and "
            "its loss falls to 0.",
            fix=(
                "print the labels and their counts before training",
                "check the code that creates the labels: look for a misspelt class name or a filter",
            ),
            evidence={"label": targets.only_target, "examples": targets.examples},
            severity="warning" if targets.only_target == 0 else "note",
        )

    def _only_class(self, targets: TargetHistory) -> Finding | None:
        """Look for a classifier whose targets are all of one class."""
        if targets.only_target is None or targets.constant_losses.max() > ANOTHER:
            return None
        label = int(targets.only_target)
        return self.found(
            f"All labels of the {targets.examples:,} examples in {len(targets.steps)} sampled steps are {label}, "
            f"but the model has {targets.outputs} classes. With only one class, the model can learn only a "
            "constant prediction, and its loss falls to 0.",
            fix=(
                "print the labels and their counts before training",
                "check the code that creates the labels: look for a filter, or for the wrong column or part of a "
                "file name",
            ),
            evidence={"label": label, "examples": targets.examples, "num_classes": targets.outputs},
            severity="warning",
        )

    def _only_number(self, targets: TargetHistory) -> Finding | None:
        """Look for a regression whose targets are all the same number."""
        value = targets.only_target
        if value is None or targets.examples < ROUNDED_ROWS:
            return None
        if targets.constant_losses.max() > REL_TOLERANCE * max(1.0, value**2):
            return None  # small numbers that differ, such as returns per minute
        cast = "values between 0 and 1 were cast to integers, or that " if value == 0 else ""
        return self.found(
            f"All targets of the {targets.examples:,} examples in {len(targets.steps)} sampled steps are "
            f"{value:.4g}. With only one target value, the model can learn only a constant prediction, and its "
            f"loss falls to almost 0. The usual cause is that {cast}the wrong column is used as the target.",
            fix=(
                *((KEEP_FRACTIONS,) if value == 0 else ()),
                "print ten targets as the loss receives them",
            ),
            evidence={"target": value, "examples": targets.examples},
            severity="warning",
        )

    @check
    def from_weights(self, weights: SampleWeights) -> Finding | None:
        """Look for sample weights that leave a single class in the loss."""
        counted = {label: rows - zero for label, (rows, zero) in weights.by_label.items() if rows > zero}
        dropped = {label: rows for label, (rows, zero) in weights.by_label.items() if rows == zero}
        if not weights.by_label:
            raise NotApplicable("needs sample weights and one class per row")
        if len(counted) != 1 or sum(dropped.values()) < MIN_ROWS or sum(counted.values()) < MIN_ROWS:
            return None
        (label,) = counted
        others = listed([str(other) for other in sorted(dropped)])
        return self.found(
            f"All {sum(dropped.values()):,} rows of class {others} in the {weights.batches} batches checked have "
            f"weight 0, so only class {label} contributes to the loss. With only one class, the model can learn "
            "only a constant prediction, and its loss falls to 0.",
            fix=(
                "start with weights = np.ones(len(y)), then increase the weights of the rare class",
                f"give no class a weight of 0: class_weight={{{label}: ..., {sorted(dropped)[0]}: 1.0}}",
            ),
            evidence={"label": label, "rows": weights.rows, "without_weight": weights.zero_rows},
            severity="warning",
        )

    @check
    def from_rounded_targets(self, dataset: DatasetFacts, loss: LossFacts) -> Finding | None:
        """Look for regression targets whose fractions were cut off, so that all are 0."""
        import numpy as np

        targets = dataset.labels
        if loss.kind not in ("mean_squared_error", "mean_absolute_error"):
            raise NotApplicable("needs a squared-error or absolute-error loss")
        if targets is None or not np.issubdtype(targets.dtype, np.integer) or targets.size < ROUNDED_ROWS:
            raise NotApplicable(f"needs {ROUNDED_ROWS} integer targets")
        others = targets[targets != 0]
        if others.size > 1 or (others != 1).any():
            return None
        seen = "All" if not others.size else "All but one of the"
        return self.found(
            f"{seen} {targets.size} targets checked are the integer 0. Casting to integers "
            "drops the fractional part, so values between 0 and 1, such as those from a scaler, all become 0. The "
            "model learns to predict 0, and its loss falls to almost 0.",
            fix=(
                "y = y.astype('float32')  # not int",
                "print the targets and their mean as the loss receives them",
            ),
            evidence={"targets": int(targets.size), "other_than_zero": int(others.size)},
            severity="warning",
        )

    @check
    def from_scaled_targets(self, batch: BatchFacts, loss: LossFacts) -> Finding | None:
        """Look for labels of 0 and 1 that were divided by something, so that all are close to 0."""
        import numpy as np

        labels = batch.labels
        if loss.kind != "binary_cross_entropy" or labels is None or labels.dtype.kind != "f":
            raise NotApplicable("needs floating-point targets and a binary cross-entropy loss")
        values = np.unique(labels)
        if labels.size < MIN_ROWS or len(values) != 2 or values[0] != 0 or not 0 < values[1] <= NEXT_TO_NOTHING:
            return None
        high = float(values[1])
        return self.found(
            f"All targets in this batch are 0 or {high:.3g}. The binary cross-entropy loss interprets "
            f"targets as probabilities, so even a target of {high:.3g} means that the class is almost certainly "
            "absent. The model learns to predict 0 everywhere, and its loss falls to almost 0.",
            fix=(
                f"use targets of 0 and 1: the current targets look as if they had been divided by {1 / high:.0f}",
                "scale only the inputs, not the labels or masks",
            ),
            evidence={"targets": [0.0, high], "share_of_the_higher": round(float((labels > 0).mean()), 4)},
            severity="warning",
        )


def _rows(labels: Array, dataset: DatasetFacts, complete: bool) -> str:
    if complete:
        return f"All {labels.size} rows of the dataset have"
    if not dataset.spread_out:
        return f"The first {labels.size} rows (no others were read) all have"
    size = "" if dataset.size is None else f" ({dataset.size} rows)"
    return f"All {labels.size} rows sampled from the whole dataset{size} have"


def _called(labels: Array, names: tuple[str, ...] | None) -> str:
    label = int(labels[0])
    return f" ({names[label]})" if names is not None and 0 <= label < len(names) else ""
