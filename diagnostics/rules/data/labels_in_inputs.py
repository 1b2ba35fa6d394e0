"""See `LabelsInInputs`."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, LabelsInInputsCrash
from diagnostics.facts.pipeline import BatchFacts, ModelFacts

# What people and libraries call a target: the course's and Trainer's names, scikit-learn's, and the plain word.
NAMES = ("labels", "label", "label_ids", "targets", "target", "y")

SHOWN = 6  # columns written out in a fix; a table of features can have hundreds


class LabelsInInputs(Rule):
    """The labels sit among the inputs, while the loss expects them apart.

    ## What it does
    Looks at a batch that has no target, although a loss was given that needs one: is one of its inputs called
    `labels`, `label`, `label_ids`, `targets`, `target` or `y`? After a crash it reads the same from the
    traceback.

    ## Why it is bad
    The loss compares the prediction with a target. A batch that is one dict is all input to Keras, the labels
    too, so the target is None: there is no loss, and nothing to compute a gradient from. The message says
    nothing of labels: `None values not supported` in Keras 3, `No gradients provided for any variable` before.

    ## Example
    ```python
    batches = dataset.to_tf_dataset(columns=["input_ids", "attention_mask", "labels"], batch_size=16)
    model.compile(optimizer=Adam(5e-5), loss=SparseCategoricalCrossentropy(from_logits=True))
    model.fit(batches)
    ```

    ## Instead
    ```python
    batches = dataset.to_tf_dataset(
        columns=["input_ids", "attention_mask"], label_cols=["labels"], batch_size=16
    )
    ```

    Mind what the loss reads, now that it gets to read something. These models return logits, and the string
    `loss="sparse_categorical_crossentropy"` takes them for probabilities: that is the next bug,
    `logits-as-probabilities`.

    The TensorFlow classes of transformers 4 know another repair: leave the labels where they are and give
    `compile` no loss, and the model uses its own. It holds for these classes alone. A plain Keras or KerasHub
    model has no loss of its own, and fails with `No loss to compute`.

    ## Thresholds
    None: the target is there or it is not.

    ## Known problems
    A target under a name that is not in the list is not recognised. A model that computes its loss itself
    (`add_loss`, a `train_step` of its own, a Hugging Face model that is given labels) wants its labels among
    the inputs and is left alone, as far as the probe can see that it does.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" (TensorFlow); the documentation of
    `datasets.Dataset.to_tf_dataset` (`label_cols`) and of `keras.Model.fit` (`x`, `y`).
    """

    severity = "error"

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Look for labels among the inputs of a batch that has no target."""
        if model.computes_loss is None:
            raise NotApplicable("needs to know whether the loss is given apart from the model")
        if model.computes_loss or batch.labels is not None or batch.labels_name is not None:
            return None
        name = _target_among(batch.inputs)
        if name is None:
            return None
        return self.found(
            f'This batch is one dict of inputs ({_listed(batch.inputs)}), with "{name}" among them and no target '
            f"beside them. The loss was given apart from {model.name} and compares its prediction with a target; "
            "without one there is no loss, and nothing to compute a gradient from.",
            fix=_fix(name, batch.inputs, model.library),
            evidence={"inputs": list(batch.inputs), "labels": name},
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: LabelsInInputsCrash) -> Finding | None:
        """Say what the framework's message leaves out: that the loss got no target."""
        inputs = symptom.inputs or ()
        name = symptom.labels or _target_among(inputs)
        if name is not None:
            among = f" ({_listed(inputs)})" if inputs else ""
            seen = f'The loss gets no target: "{name}" sits among the inputs{among}, where only the model sees it.'
        elif inputs:
            seen = (
                f"The loss gets no target: the batch is one dict of inputs ({_listed(inputs)}). If one of them "
                "holds the labels, only the model sees it."
            )
        else:
            unknown = (
                "could not be read from the exception's frames"
                if crash.live
                else "cannot be known from the text: pass the exception itself to diagnostics.explain"
            )
            seen = (
                "Most likely the loss got no target, because the labels sit among the inputs, where only the "
                f"model sees them. Whether it is that, and which of the inputs holds them, {unknown}."
            )
        return self.found(
            f"{seen} A loss given to compile() compares the prediction with a target; without one there is no "
            "loss, and nothing to compute a gradient from.",
            fix=_fix(name or "labels", inputs, "keras"),
            evidence={"inputs": list(inputs), "labels": name},
            where=crash.where,
        )


def _target_among(inputs: Iterable[str]) -> str | None:
    """Return the input that is called what a target is called, the most usual name first."""
    by_name = {name.lower(): name for name in inputs}
    return next((by_name[name] for name in NAMES if name in by_name), None)


def _listed(inputs: Iterable[str]) -> str:
    names = list(inputs)
    return ", ".join([*names[:SHOWN], f"{len(names) - SHOWN} more"] if len(names) > SHOWN else names)


def _fix(name: str, inputs: Iterable[str], library: str) -> str:
    if library != "keras":
        return f'target = batch.pop("{name}"); loss = loss_fn(model(**batch), target)'
    kept = [column for column in inputs if column != name]
    columns = "[...]"
    if 0 < len(kept) <= SHOWN:
        columns = "[" + ", ".join(f'"{column}"' for column in kept) + "]"
    return (
        f'dataset.to_tf_dataset(columns={columns}, label_cols=["{name}"], ...), and a loss with from_logits=True '
        "if the model returns logits. Only for a TensorFlow class of transformers 4, which has a loss of its "
        "own: model.compile(optimizer=...) without a loss"
    )
