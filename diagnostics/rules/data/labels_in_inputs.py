"""See `LabelsInInputs`."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.course import TargetHistory
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import LabelsInInputsCrash
from diagnostics.facts.dependence import CopyFacts, DependenceFacts
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.text.join import listed, not_known

# Common names of targets: from the course, Trainer and scikit-learn, and the plain word.
NAMES = ("labels", "label", "label_ids", "targets", "target", "y")

COPIED = 0.9  # share of random tokens reproduced; a model that reads anything else cannot do it
NOTHING_HIDDEN = (
    "Every target equals the token that the model reads at the same position. If the labels had been taken before "
    "masking, the targets of the masked tokens would differ."
)
NOTHING_TO_COPY = "During generation, there is nothing to copy."
COPY_FIX = {
    "torch": (
        "inputs, targets = tokens[:, :-1], tokens[:, 1:]  # predict the next token",
        "loss_fn(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())  # if the model gets the whole sequence",
        "decoder_input = torch.cat([bos, target[:, :-1]], dim=1)",
    ),
    "keras": (
        "inputs, targets = tokens[:, :-1], tokens[:, 1:]  # predict the next token",
        "decoder_input = np.concatenate([bos, target[:, :-1]], axis=1)",
    ),
}
MASKED_FIX = {
    "torch": (
        "DataCollatorForLanguageModeling(tokenizer, mlm=True)",
        "labels = input_ids.clone()  # before input_ids is masked; then labels[~masked] = -100",
    )
}
SHOWN = 6  # columns written out in a fix; a table of features can have hundreds


class LabelsInInputs(Rule):
    """The labels are among the inputs, so the loss has no target, or the model can copy the answer.

    ## What it does
    If a batch has no target even though the loss needs one, the rule checks whether one of the inputs is named
    `labels`, `label`, `label_ids`, `targets`, `target` or `y`. After a crash, it reads the same information from
    the traceback. In a watched run, the rule looks for an input value that equals the target. For a masked
    language model, it looks for targets that are the mask token itself, which means that the labels were copied
    after masking.

    ## Why it is bad
    If a batch is a single dict, Keras treats everything in it as inputs, labels included. The target is then None,
    and there is no loss. The error does not mention labels: `None values not supported` in Keras 3,
    `No gradients provided for any variable` in earlier versions.

    If the target stays among the features, or a window ends with the value to be predicted, the model copies it to
    the output. The scores look perfect, even in evaluation, but the model is useless wherever the answer is
    unknown.

    ## Example
    ```python
    columns = ["input_ids", "attention_mask", "labels"]
    batches = dataset.to_tf_dataset(columns=columns, batch_size=16)
    loss = SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=Adam(5e-5), loss=loss)
    model.fit(batches)
    ```

    ## Instead
    ```python
    batches = dataset.to_tf_dataset(
        columns=["input_ids", "attention_mask"], label_cols=["labels"], batch_size=16
    )
    ```

    Then check what the loss expects. These models return logits, but the string
    `loss="sparse_categorical_crossentropy"` selects a loss that expects probabilities: that is the next bug,
    `logits-as-probabilities`.

    For the TensorFlow classes in transformers 4 there is another fix: keep the labels among the inputs and call
    `compile` without a loss, so that the model uses its own loss. This fix works only for these classes. A plain
    Keras or KerasHub model has no loss of its own and fails with `No loss to compute`.

    ## Thresholds
    There is no threshold for a batch without a target. If there is a target, there must be at least 100 rows, and
    exactly one position must reveal the target in all of them. Either the value in this position equals a
    regression target with at least 20 different values, or each class has its own value there.

    If the rows are sequences, this position must be in the last time step. It may be in another step if at least
    10 rows overlap, as windows of the same series do.

    If the targets are the tokens of an input, the rule replaces that input with random tokens, and the trained
    model must reproduce at least 90% of them. A model that may be an autoencoder is not reported.

    A token is recognised as the mask token if four conditions hold:

    - Every target equals the input at its position.
    - At most half of the positions have a target.
    - The token fills at least half of the positions that have a target.
    - The token occurs nowhere else.

    ## Known problems
    Targets under other names are not recognised. A model that computes its own loss (`add_loss`, a custom
    `train_step`, a Hugging Face model with labels) needs its labels among the inputs. Such a model is not reported
    if the rule recognises it.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" (TensorFlow); the documentation for
    `datasets.Dataset.to_tf_dataset` (`label_cols`) and `keras.Model.fit` (`x`, `y`).
    """

    severity = "error"

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Look for labels among the inputs of a batch that has no target."""
        if model.computes_loss is None:
            raise NotApplicable("it is not known whether the model computes its own loss")
        if model.computes_loss or batch.labels is not None or batch.labels_name is not None:
            return None
        name = _target_among(batch.inputs)
        if name is None:
            return None
        return self.found(
            f'This batch is a single dict of inputs ({_inputs(batch.inputs)}): "{name}" is one of them, so there '
            f"is no separate target. The loss needs a target to compare the prediction of {model.name} "
            "with, so neither the loss nor its gradient can be computed.",
            fix=_fixes(name, batch.inputs),
            evidence={"inputs": list(batch.inputs), "labels": name},
        )

    @check
    def from_targets(self, targets: TargetHistory) -> Finding | None:
        """Look for a number in the inputs that equals the target."""
        copied = targets.copied
        if copied is None:
            return None
        where = f"Position {copied.column} (counted from 0) of the {copied.columns} checked in each row"
        if copied.column == copied.columns - 1:
            where = f"The last of the {copied.columns} positions checked in each row"
        seen = (
            f"{where} holds the target itself"
            if copied.equal
            else f"{where} holds one fixed value for each of the {copied.values} classes"
        )
        return self.found(
            f"{seen}, in all {copied.rows} sampled rows. The model can read the target from its input, so its "
            "scores say nothing about data whose target is unknown.",
            fix={
                "torch": (
                    "remove the target column from the inputs",
                    "end the window before the value to be predicted: x = series[i : i + n], y = series[i + n]",
                ),
                "keras": (
                    'remove the target column from the inputs: y = table.pop("target")',
                    "end the window before the value to be predicted: timeseries_dataset_from_array(series, "
                    "targets=series[n:], sequence_length=n)",
                ),
            },
            evidence={"column": copied.column, "columns": copied.columns, "rows": copied.rows},
            severity="warning",
        )

    @check
    def from_answers(self, dependence: DependenceFacts) -> Finding | None:
        """Look for a model that copies its targets from an input."""
        copy = dependence.copy
        if copy is None:
            why_not = "needs a model that also receives the targets as an input"
            raise NotApplicable(dependence.why_not.get("copy", why_not))
        if copy.mask is not None:
            return self._of_mask(copy)
        if not dependence.trained or copy.share < COPIED:
            return None
        shown = "the input" if copy.input.isdigit() else f"the input {copy.input!r}"
        source = "" if copy.source is None else " It does so without using its other input."
        return self.found(
            f"The targets are the tokens of {shown} at the same position, and the trained model copies them: "
            f"given random tokens, it returns {copy.share:.0%} of them.{source} "
            + (NOTHING_HIDDEN if copy.masked else NOTHING_TO_COPY),
            fix=MASKED_FIX if copy.masked else COPY_FIX,
            evidence={"input": copy.input, "share": copy.share, "source": copy.source, "length": copy.length},
            severity="warning" if copy.source is None else "error",
        )

    def _of_mask(self, copy: CopyFacts) -> Finding:
        """Report the targets of a masked language model that were taken from the masked text."""
        shown = "the input" if copy.input.isdigit() else f"{copy.input!r}"
        return self.found(
            f"The mask token itself is the target: {copy.hidden:,} of the {copy.targets:,} targets in the first "
            f"batch are token {copy.mask}, which occurs in {shown} at these positions and nowhere else. Each "
            "target equals the token at its position, so the labels were taken from the tokens after masking, or "
            "share memory with the tokens and were masked along with them. The model learns to predict the mask "
            "token, never the original token.",
            fix=MASKED_FIX["torch"][::-1],
            evidence={
                "input": copy.input,
                "mask": copy.mask,
                "targets": copy.targets,
                "hidden": copy.hidden,
                "length": copy.length,
            },
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: LabelsInInputsCrash) -> Finding | None:
        """Explain the framework's error as a loss without a target."""
        inputs = symptom.inputs or ()
        name = symptom.labels or _target_among(inputs)
        if name is not None:
            among = f" ({_inputs(inputs)})" if inputs else ""
            seen = f'The loss gets no target: "{name}" is among the inputs{among}, which only the model receives.'
        elif inputs:
            seen = (
                f"The loss gets no target: the batch is a single dict of inputs ({_inputs(inputs)}). If one of "
                "them holds the labels, only the model receives it."
            )
        else:
            seen = (
                "The loss probably got no target, because the labels are among the inputs, which only the "
                f"model receives. {not_known('the name of the input that holds the labels', crash.live)}"
            )
        return self.found(
            f"{seen} A loss given to compile() needs a target to compare the prediction with, so neither the "
            "loss nor its gradient can be computed.",
            fix=_fixes(name or "labels", inputs)["keras"],
            evidence={"inputs": list(inputs), "labels": name},
            where=crash.where,
        )


def _target_among(inputs: Iterable[str]) -> str | None:
    """Return the input that is named like a target; the most common name wins."""
    by_name = {name.lower(): name for name in inputs}
    return next((by_name[name] for name in NAMES if name in by_name), None)


def _inputs(inputs: Iterable[str]) -> str:
    return listed(inputs, most=SHOWN)


def _fixes(name: str, inputs: Iterable[str]) -> dict[str, Fix]:
    kept = [column for column in inputs if column != name]
    columns = "[...]"
    if 0 < len(kept) <= SHOWN:
        columns = "[" + ", ".join(f'"{column}"' for column in kept) + "]"
    return {
        "torch": f'target = batch.pop("{name}"); loss = loss_fn(model(**batch), target)',
        "keras": (
            f'dataset.to_tf_dataset(columns={columns}, label_cols=["{name}"], ...); if the model '
            "returns logits, also use a loss with from_logits=True",
            "for a TensorFlow model from transformers 4, which computes its own loss, call "
            "model.compile(optimizer=...) without a loss",
        ),
    }
