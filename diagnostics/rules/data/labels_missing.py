"""See `LabelsMissing`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, LossMissing, TargetMissing
from diagnostics.facts.pipeline import BatchFacts, ModelFacts

FIX = (
    'call the column of targets "labels": dataset = dataset.rename_column("target", "labels"); for a '
    "language "
    "model: data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False)"
)
FIX_KERAS = (
    "model.fit(x, y), or a dataset of pairs: tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(32)"
)


class LabelsMissing(Rule):
    """A loss is to be computed, and the batch has no labels to compute it from.

    ## What it does
    Looks for labels in a batch when the training loop takes the loss from what the model returns, as
    `Trainer` does unless told otherwise. After a crash it reads what the model was given and what it gave
    back, or what `fit` was given.

    ## Why it is bad
    A Hugging Face model computes its loss only when it is given `labels`. Without them it returns logits and
    no loss, and there is nothing to differentiate. The column is often there under another name: `Trainer`
    keeps `label` and `labels` and drops, without an error, every other column that the model does not
    accept. Keras computes the loss outside the model and hands it None for a target: `None values not
    supported`.

    ## Example
    ```python
    rows = Dataset.from_dict({"text": texts, "target": targets}).map(tokenize, batched=True)
    trainer = Trainer(model, args, train_dataset=rows)    # "target" is dropped
    ```

    ## Instead
    ```python
    rows = Dataset.from_dict({"text": texts, "labels": targets}).map(tokenize, batched=True)
    trainer = Trainer(model, args, train_dataset=rows)
    ```

    ## Thresholds
    None: either the labels are there or they are not.

    ## Known problems
    Before training, a batch without labels is reported only where it is known that the loss comes from the
    model: a loop of your own may compute the loss outside, or make the labels from the inputs. A model that
    was given labels and still returned no loss, having no head that computes one, is not this pattern and is
    left alone.

    ## Sources
    The documentation of `transformers.Trainer` ("your model can compute the loss if a labels argument is
    provided") and of `transformers.TrainingArguments` (`label_names`, `remove_unused_columns`).
    """

    severity = "error"
    no_exhibit = "the error names the inputs that the model got, so the cause is one step from the symptom"

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Look for labels in a batch whose loss the model is to compute."""
        if model.library != "transformers" or "labels" not in model.input_names:
            raise NotApplicable("needs a transformers model that takes labels")
        if not model.computes_loss:
            raise NotApplicable("needs to know that the loss comes from the model itself")
        # A name may be known where the labels are no single array, as the boxes of an object detector.
        if batch.labels is not None or batch.labels_name is not None or "labels" in batch.inputs:
            return None
        return self.found(
            f"The loss is to come from {model.name}, which computes one only when it is given labels. This "
            f"batch holds {', '.join(batch.inputs) or 'nothing'} and no labels, so there will be no loss to "
            "minimise.",
            fix=FIX,
            evidence={"inputs": list(batch.inputs)},
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: LossMissing) -> Finding | None:
        """Name what the model was given and what it gave back."""
        if "labels" in symptom.received:
            return None
        given = ", ".join(symptom.received) or "inputs that are not known"
        returned = ", ".join(symptom.returned) or "no output that is known"
        return self.found(
            f"The model was given {given}, but no labels; it returned {returned}, but no loss. It computes a "
            "loss only when it is given labels, so there is nothing to minimise.",
            fix=FIX,
            evidence={"received": list(symptom.received), "returned": list(symptom.returned)},
            where=crash.where,
        )

    @check
    def from_fit(self, crash: CrashFacts, symptom: TargetMissing) -> Finding | None:
        """Say that `fit` was given inputs and nothing else."""
        inputs = f" ({', '.join(symptom.inputs)})" if symptom.inputs else ""
        return self.found(
            f"The model was given inputs{inputs}, but no labels, so the loss got no target. A loss given to "
            "compile() compares the prediction with a target; without one there is nothing to minimise.",
            fix=FIX_KERAS,
            evidence={"received": list(symptom.inputs)},
            where=crash.where,
        )
