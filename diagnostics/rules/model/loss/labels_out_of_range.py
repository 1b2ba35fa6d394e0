"""See `LabelsOutOfRange`."""

from __future__ import annotations

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.array import Array
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import LabelBeyondOutputs
from diagnostics.facts.pipeline import BatchFacts, ModelFacts, OutputFacts, class_labels
from diagnostics.facts.where import Where
from diagnostics.text.join import among, listed, not_known

RENUMBER = "number the classes from 0; use the loss's ignore_index argument for labels that it should skip"


class LabelsOutOfRange(MessageRule):
    """A label names a class that the model does not have.

    ## What it does
    Compares the class labels of a batch with the model's number of outputs. Labels must be between 0 and the
    number of outputs minus 1; the ignore index (-100 unless the loss specifies another) is excluded.

    ## Why it is bad
    The loss uses the label as an index into the outputs. If the model has no output with this index, PyTorch
    raises `IndexError: Target 2 is out of bounds` on a CPU and fails at a later line with a device-side assert on
    a GPU, and XLA returns a NaN loss.

    ## Example
    ```python
    # two outputs, by default
    model = AutoModelForSequenceClassification.from_pretrained(name)
    trainer = Trainer(model, args, train_dataset=three_way_nli)         # labels 0, 1 and 2
    ```

    ## Instead
    ```python
    model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=3)
    ```

    ## Thresholds
    None: one label outside the range is enough.

    ## Known problems
    Before training, only one batch is checked. A wrong label in another batch is found only when the loss fails on
    it.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline"; PyTorch's documentation for
    `torch.nn.CrossEntropyLoss` (`target`, `ignore_index`).
    """

    severity = "error"
    causes = ("asynchronous-error", "initial-loss-off", *NO_LEARNING, *NAN)

    @check
    def from_outputs(self, batch: BatchFacts, outputs: OutputFacts, model: ModelFacts) -> Finding | None:
        """Compare the labels of one batch with the model's outputs."""
        labels = batch.class_labels
        if labels is None or outputs.num_classes is None or not outputs.indexed_labels:
            raise NotApplicable("needs labels that are class indices")
        return self._compare(labels, outputs.num_classes, model.outputs_setting)

    @check
    def from_crash(self, crash: CrashFacts, symptom: LabelBeyondOutputs) -> Finding | None:
        """Read labels and outputs from the stack frames, or report what the text does not show."""
        labels = class_labels(symptom.labels, symptom.ignore_index)
        if labels is not None and symptom.num_outputs is not None:
            finding = self._compare(
                labels, symptom.num_outputs, symptom.outputs_setting, crash.where, symptom.labels_from
            )
            if finding is not None:
                return finding
        if symptom.label is not None and symptom.label < 0:
            return self.found(
                f"Label {symptom.label} is negative, but classes are counted from 0. "
                f"{not_known('the examples with that label', live=False)}",
                fix=RENUMBER,
                evidence={"label": symptom.label},
                where=crash.where,
            )
        label = "A label" if symptom.label is None else f"Label {symptom.label}"
        return self.found(
            f"{label} is beyond the model's last class. Classes are counted from 0, so every label must be "
            "smaller than the number of outputs. "
            f"{not_known('the number of outputs and the examples with that label', live=False)}",
            fix=(
                symptom.outputs_setting.format("n") + ", where n is the largest label + 1",
                "if the labels start at 1, subtract 1 from each label",
                "call print(labels.unique()) on the CPU; if a mask holds colours, map them to classes 0..C-1",
                "give the loss ignore_index=255, if 255 marks pixels to ignore",
            ),
            evidence={"label": symptom.label},
            where=crash.where,
        )

    def _compare(
        self,
        labels: Array,
        num_outputs: int,
        setting: str,
        where: Where | None = None,
        labels_from: str = "this batch",
    ) -> Finding | None:
        outside = labels[(labels < 0) | (labels >= num_outputs)]
        if not outside.size:
            return None
        low, high = int(labels.min()), int(labels.max())
        culprits = sorted({int(label) for label in outside})
        verb = "is" if outside.size == 1 else "are"
        evidence = {
            "lowest_label": low,
            "highest_label": high,
            "num_outputs": num_outputs,
            "labels_outside": culprits,
            "examples_outside": int(outside.size),
            "labels_in_batch": int(labels.size),
        }
        counted = (
            f"{among(int(outside.size), int(labels.size), 'label')} in {labels_from} {verb} out of range "
            f"(label{'s' if len(culprits) > 1 else ''} {listed(culprits)})"
        )
        if low < 0:
            return self.found(
                f"The labels range from {low} to {high}, but classes are counted from 0: {counted}.",
                fix=RENUMBER,
                evidence=evidence,
                where=where,
            )
        fix: tuple[str, ...] = (setting.format(high + 1),)
        seen = f"so there are at least {high + 1} classes, but the model has {num_outputs} outputs"
        if (low, high) == (1, num_outputs):
            seen = f"but the model's {num_outputs} outputs cover labels 0 to {num_outputs - 1}"
            fix = ("if the labels start at 1, subtract 1 from each label", *fix)
        return self.found(
            f"The labels range from {low} to {high}, {seen}. {counted}.",
            fix=fix,
            evidence=evidence,
            where=where,
        )
