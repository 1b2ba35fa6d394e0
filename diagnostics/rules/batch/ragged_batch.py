"""See `RaggedBatch`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.crash import CrashFacts, RaggedColumns

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
PAD_KERAS = (
    'dataset.to_tf_dataset(..., collate_fn=DataCollatorWithPadding(tokenizer, return_tensors="np")); or '
    'dataset.padded_batch(32) instead of batch(32); or keras.utils.pad_sequences(rows, padding="post")'
)


class RaggedBatch(Rule):
    """Examples of different lengths are to become one batch, and nothing pads them.

    ## What it does
    Recognises the failure to stack examples, and reads from the frames which columns differ in length.

    ## Why it is bad
    A batch is one tensor, and a tensor is rectangular: every example must have as many values as the next.
    The message (`expected sequence of length 11 at dim 1 (got 13)`, `stack expects each tensor to be equal
    size`; in TensorFlow `Can't convert non-rectangular Python sequence to Tensor`,
    `Cannot batch tensors with different shapes in component 0`) names two lengths at most, but neither the
    column nor what is missing: padding.

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

    @check
    def from_crash(self, crash: CrashFacts, symptom: RaggedColumns) -> Finding | None:
        """Name columns and lengths, or say what the text leaves open."""
        rectangular = "A tensor is rectangular, and nothing here pads the shorter ones"
        evidence = {
            "lengths": {name: list(lengths) for name, lengths in symptom.lengths.items()},
            "clash": list(symptom.clash or ()),
        }
        if symptom.lengths:
            count = max(map(len, symptom.lengths.values()))
            examples = f"{count} examples" if crash.in_keras else f"{count} examples of this batch"
            return self.found(
                f"The {examples} differ in length: {_ranges(symptom.lengths)}. {rectangular}.",
                fix=_fix(symptom.lengths, crash.in_keras),
                evidence=evidence,
                where=crash.where,
            )
        column = symptom.column
        of = "" if column is None else f" in {_called(column)}"
        seen = (
            f"One example has {symptom.clash[0]} values{of} where another has {symptom.clash[1]}, so they "
            "cannot be stacked"
            if symptom.clash
            else f"Examples of different lengths{of} cannot be stacked"
        )
        unknown = ""
        if not crash.live:
            which = "How long the others are" if column else "Which column it is, and how long the others are,"
            unknown = f" {which} cannot be known from the text: pass the exception itself to diagnostics.explain."
        elif column is None:
            unknown = " Which column it is could not be read from the exception's frames."
        return self.found(
            f"{seen} into one batch. {rectangular}.{unknown}",
            fix=_fix([column] if column else [], crash.in_keras),
            evidence=evidence | ({"column": column} if column else {}),
            where=crash.where,
        )


def _fix(columns: Collection[str], in_keras: bool) -> str:
    if in_keras:
        return PAD_KERAS
    return PAD_LABELS if {"labels", "label"} & set(columns) else PAD


def _called(column: str) -> str:
    return f"item {column} of each" if column.isdigit() else column


def _ranges(lengths: Mapping[str, tuple[int, ...]]) -> str:
    """Say the shortest and the longest, once for columns that agree in both."""
    columns: dict[tuple[int, int], list[str]] = {}
    for name, sizes in lengths.items():
        columns.setdefault((min(sizes), max(sizes)), []).append(_called(name))
    return "; ".join(f"{low} to {high} values in {', '.join(names)}" for (low, high), names in columns.items())
