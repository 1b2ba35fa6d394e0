"""See `UnusedClasses`."""

from __future__ import annotations

import math

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import OUTPUTS_SETTING, ModelFacts, OutputFacts
from diagnostics.text.join import count_of

RATIO = 2.0  # below it, rare classes missing from the sample explain the difference just as well
SPARE_OUTPUTS = 10  # two or three unused outputs have no measurable cost


class UnusedClasses(Rule):
    """The model has many more outputs than the data has classes.

    ## What it does
    Compares the number of outputs with the number of classes. This is the number of class names if the dataset has
    them, and otherwise the highest label in the rows that were read, plus one.

    ## Why it is bad
    Usually the last layer was made for other data, such as ImageNet's 1000 classes in a model for ten kinds of
    animals. The initial loss is then ln 1000 = 6.9 instead of ln 10 = 2.3, and the model can predict a class that
    does not exist.

    ## Example
    ```python
    model = torchvision.models.resnet18(weights="DEFAULT")    # 1000 outputs
    loader = DataLoader(CIFAR10(root, transform=transform))   # 10 classes
    ```

    ## Instead
    ```python
    model.fc = nn.Linear(model.fc.in_features, 10)
    ```

    ## Thresholds
    There must be more than twice as many outputs as classes, and at least 10 more. These margins allow for a few
    reserved or rare classes. The finding is a note unless the number of classes is certain, either from the class
    names or because every row was read.

    ## Known problems
    An output layer that was widened on purpose, for example to a multiple of 64 for speed, is reported if there
    are few classes. A debugging subset of a sorted dataset contains only the first classes, so it is reported if
    the dataset has no class names.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "init well": the last layer should fit the
    targets. PyTorch's tutorial "Transfer Learning for Computer Vision" replaces `fc` for this reason.
    """

    severity = "warning"

    @check
    def from_dataset(
        self, dataset: DatasetFacts, outputs: OutputFacts, model: ModelFacts | None = None
    ) -> Finding | None:
        """Compare the classes of the dataset with the model's outputs."""
        labels, names, num_outputs = dataset.labels, dataset.label_names, outputs.num_classes
        labels = None if labels is None else labels[labels >= 0]  # the loss skips negative labels
        if labels is None or not labels.size or num_outputs is None:
            raise NotApplicable("needs labels that are class indices")
        low, high = int(labels.min()), int(labels.max())
        classes = max(high + 1, len(names or ()))
        if num_outputs <= RATIO * classes or num_outputs - classes < SPARE_OUTPUTS:
            return None
        read_all = dataset.rows_read == dataset.size
        known = names is not None or read_all
        have = f"have label {high}" if low == high else f"have labels from {low} to {high}"
        if names is not None:
            seen = f"The dataset has {count_of(classes, 'class', 'classes')}"
        elif read_all:
            seen = f"All {dataset.rows_read} rows of the dataset {have}"
        else:
            seen = f"The {dataset.rows_read} rows checked {have}"
        start, could = (f"ln {n} = {math.log(n):.1f}" for n in (num_outputs, classes))
        cost = (
            f"{num_outputs - classes} outputs are never used, and the loss starts near {start} instead of {could}"
        )
        if not known:
            cost = f"if the other rows have no higher labels, {cost}"
        setting = OUTPUTS_SETTING if model is None else model.outputs_setting
        return self.found(
            f"{seen}, but the model has {num_outputs} outputs: {cost}. Was the last layer built for a different "
            "dataset?",
            fix=setting.format(classes) if known else f"{setting.format('n')}, where n is the number of classes",
            evidence={
                "num_outputs": num_outputs,
                "classes": classes,
                "lowest_label": low,
                "highest_label": high,
                "rows_read": dataset.rows_read,
                "rows": dataset.size,
            },
            severity="warning" if known else "note",
        )
