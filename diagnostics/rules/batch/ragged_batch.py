"""See `RaggedBatch`."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostics.crash_facts import CrashFacts, RaggedColumns
from diagnostics.finding import Finding
from diagnostics.rule import Rule

PAD = (
    "data_collator=DataCollatorWithPadding(tokenizer) pads each batch; or tokenizer(..., padding=True) "
    "where you tokenize; or pad_sequence(..., batch_first=True) in a collate_fn of your own"
)
# DataCollatorWithPadding leaves labels as they are; these two pad them with -100.
PAD_LABELS = (
    "data_collator=DataCollatorForTokenClassification(tokenizer), or DataCollatorForSeq2Seq(tokenizer): "
    "they pad the labels too; or pad_sequence(..., batch_first=True, padding_value=-100) in a collate_fn "
    "of your own"
)


class RaggedBatch(Rule):
    """Examples of different lengths are to become one batch, and nothing pads them.

    ## What it does
    Recognises the failure to stack examples, and reads from the frames which columns differ in length.

    ## Why it is bad
    A batch is one tensor, and a tensor is rectangular: every example must have as many values as the next.
    The message (`expected sequence of length 11 at dim 1 (got 13)`, `stack expects each tensor to be equal
    size`) names two lengths, but neither the column nor what is missing: padding.

    ## Example
    ```python
    rows = rows.map(lambda row: tokenizer(row["text"]))
    trainer = Trainer(model, args, train_dataset=rows)
    ```

    ## Instead
    ```python
    rows = rows.map(lambda row: tokenizer(row["text"]))
    trainer = Trainer(model, args, train_dataset=rows, data_collator=DataCollatorWithPadding(tokenizer))
    ```

    ## Thresholds
    None: it is found only once stacking has failed.

    ## Known problems
    Examples that differ for another reason than text length, such as images of several sizes, fail alike and
    want resizing or cropping instead of padding.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline"; the documentation of
    `transformers.DataCollatorWithPadding` and of `torch.nn.utils.rnn.pad_sequence`.
    """

    severity = "error"

    def from_crash(self, crash: CrashFacts, symptom: RaggedColumns) -> Finding | None:
        """Name columns and lengths, or say what the text leaves open."""
        rectangular = "A tensor is rectangular, and nothing here pads the shorter ones"
        evidence = {
            "lengths": {name: list(lengths) for name, lengths in symptom.lengths.items()},
            "clash": list(symptom.clash or ()),
        }
        if symptom.lengths:
            return self.found(
                f"The {max(map(len, symptom.lengths.values()))} examples of this batch differ in length: "
                f"{_ranges(symptom.lengths)}. {rectangular}.",
                fix=PAD_LABELS if "labels" in symptom.lengths else PAD,
                evidence=evidence,
                where=crash.where,
            )
        seen = (
            f"One example has {symptom.clash[0]} values where another has {symptom.clash[1]}, so they "
            "cannot be stacked"
            if symptom.clash
            else "Examples of different lengths cannot be stacked"
        )
        unknown = (
            "Which column it is could not be read from the exception's frames."
            if crash.live
            else "Which column it is, and how long the others are, cannot be known from the text: pass the "
            "exception itself to diagnostics.explain."
        )
        return self.found(
            f"{seen} into one batch. {rectangular}. {unknown}", fix=PAD, evidence=evidence, where=crash.where
        )


def _ranges(lengths: Mapping[str, tuple[int, ...]]) -> str:
    """Say the shortest and the longest, once for columns that agree in both."""
    columns: dict[tuple[int, int], list[str]] = {}
    for name, sizes in lengths.items():
        called = f"item {name} of each" if name.isdigit() else name
        columns.setdefault((min(sizes), max(sizes)), []).append(called)
    return "; ".join(f"{low} to {high} values in {', '.join(names)}" for (low, high), names in columns.items())
