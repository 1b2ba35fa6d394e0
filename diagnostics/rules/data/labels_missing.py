"""See `LabelsMissing`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, NotApplicable, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import LossMissing, TargetMissing
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.text.join import listed

LANGUAGE = "for a language model, use data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False)"
COLUMNS = 4  # that are named at most
FIX_FIT = (
    "model.fit(x, y)",
    "pass a dataset of pairs: tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(32)",
)


class LabelsMissing(MessageRule):
    """The batch has no labels to compute the loss from.

    ## What it does
    Looks for labels in a batch when the training loop uses the loss that the model returns, as `Trainer` does by
    default. After a crash, the rule examines the model's inputs and outputs, or the arguments of `fit`.

    ## Why it is bad
    A Hugging Face model computes its loss only if its inputs contain `labels`; otherwise it returns only logits.
    The column often exists under another name: `Trainer` keeps `label` and `labels`, and silently drops every
    other column that the model does not accept. Keras raises `None values not supported`.

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
    None: the batch either has labels or does not.

    ## Known problems
    Before training, a batch without labels is reported only if the model is known to compute the loss. A custom
    loop may compute the loss outside the model, or create the labels from the inputs.

    ## Sources
    The documentation for `transformers.Trainer` ("your model can compute the loss if a labels argument is
    provided") and `transformers.TrainingArguments` (`label_names`, `remove_unused_columns`).
    """

    severity = "error"

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Look for labels in a batch whose loss the model should compute."""
        if model.library != "transformers" or "labels" not in model.input_names:
            raise NotApplicable("needs a transformers model that accepts labels")
        if not model.computes_loss:
            raise NotApplicable("needs a model that is known to compute its own loss")
        # The name may be known even if the labels are not a single array (boxes of an object detector).
        if batch.labels is not None or batch.labels_name is not None or "labels" in batch.inputs:
            return None
        held = f"no labels, only {listed(batch.inputs)}" if batch.inputs else "nothing"
        return self.found(
            f"{model.name} computes its loss only from labels, but this batch contains {held}, so there is no "
            "loss to minimise.",
            fix=_fix(batch.unread),
            evidence={"inputs": list(batch.inputs)},
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: LossMissing) -> Finding | None:
        """Name the inputs and outputs of the model."""
        if "labels" in symptom.received:
            return None
        given = f"{listed(symptom.received)}, but no labels" if symptom.received else "no labels"
        joint = "; it" if symptom.received else " and"
        returned = f"{listed(symptom.returned)}, but no loss" if symptom.returned else "no loss"
        return self.found(
            f"The model got {given}{joint} returned {returned}. The model computes a loss only if it gets "
            "labels, so there is nothing to minimise.",
            fix=_fix(symptom.unread),
            evidence={"received": list(symptom.received), "returned": list(symptom.returned)},
            where=crash.where,
        )

    @check
    def from_fit(self, crash: CrashFacts, symptom: TargetMissing) -> Finding | None:
        """Report that `fit` got inputs only."""
        inputs = f" ({listed(symptom.inputs)})" if symptom.inputs else ""
        return self.found(
            f"fit() got inputs{inputs}, but no labels, so the loss given to compile() has no target to compare "
            "the prediction with.",
            fix=FIX_FIT,
            evidence={"received": list(symptom.inputs)},
            where=crash.where,
        )


def _fix(unread: tuple[str, ...]) -> Fix:
    """Return the fix; `unread`: columns of the dataset, of which one may hold the labels."""
    only = unread[0] if len(unread) == 1 else "YOUR_TARGET_COLUMN"
    among = f" (perhaps {listed(unread, 'or')})" if 1 < len(unread) <= COLUMNS else ""
    renamed = f'dataset = dataset.rename_column("{only}", "labels")'
    return f'rename the target column{among} to "labels": {renamed}', LANGUAGE
