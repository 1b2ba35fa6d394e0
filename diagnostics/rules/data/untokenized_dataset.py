"""See `UntokenizedDataset`."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, NotApplicable, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import TextInInputs, TokensMissing
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.text.join import listed, not_known

TOKENS = ("input_ids", "inputs_embeds")
# A label written as a word is also text, but is not tokenized.
LABELS = ("label", "labels")
# Token ids under other names: `prompt_ids` and `chosen_ids` (preference data), `anchor_input_ids`.
IDS = "_ids"
NO_TOKENS = ("label_ids", "token_type_ids", "position_ids")
CAUSE = "the dataset was never tokenized, or the raw dataset was passed instead of the tokenized one"


class UntokenizedDataset(MessageRule):
    """A model that needs token ids receives plain text.

    ## What it does
    If the model accepts `input_ids` and the dataset contains text, the rule looks for tokens (`input_ids` or
    `inputs_embeds`) among the columns that reach the collator. If the text itself reaches the collator, the
    collator may still tokenize it, so the collated batch is checked instead.

    ## Why it is bad
    A model cannot read a string. A `Trainer` also silently drops every column that the model does not accept, such
    as text. Only the label then reaches the model, and the error appears far from its cause:
    `You must specify exactly one of input_ids or inputs_embeds`, or `You should supply an encoding`; in Keras,
    `Cast string to int32 is not supported`. Usually the tokenized dataset exists, but the wrong variable was
    passed.

    ## Example
    ```python
    def tokenize(rows):
        return tokenizer(rows["premise"], rows["hypothesis"])

    tokenized = raw.map(tokenize, batched=True)
    trainer = Trainer(model, args, train_dataset=raw["train"])    # the raw one
    ```

    ## Instead
    ```python
    def tokenize(rows):
        return tokenizer(rows["premise"], rows["hypothesis"])

    tokenized = raw.map(tokenize, batched=True)
    trainer = Trainer(model, args, train_dataset=tokenized["train"])
    ```

    ## Thresholds
    None: the batch either has token ids or does not.

    ## Known problems
    The rule knows only the column names of Hugging Face models, so a custom model that takes its tokens under a
    different name is not checked. If the text columns are dropped and the collator gets the tokens from another
    source, the finding is a false positive.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline"; the documentation for
    `transformers.TrainingArguments` (`remove_unused_columns`).
    """

    severity = "error"

    @check
    def from_dataset(self, dataset: DatasetFacts, model: ModelFacts) -> Finding | None:
        """Look for tokens among the columns that reach the collator."""
        _require_tokens(model)
        if not dataset.columns and not dataset.dropped_columns:
            raise NotApplicable("needs a dataset with named columns")
        if not dataset.text_columns or _any_tokens(dataset.columns):
            return None
        if any(name.endswith(IDS) for name in dataset.columns if name not in NO_TOKENS):
            raise NotApplicable(
                "needs a collated batch: the dataset has columns of token ids, which the collator may combine"
            )
        if any(name in dataset.columns for name in _to_tokenize(dataset.text_columns)):
            raise NotApplicable(
                "needs a collated batch: the dataset returns text, which the collator may tokenize"
            )
        return self._raw(dataset.columns, dataset.text_columns, "reached the collator")

    @check
    def from_batch(self, dataset: DatasetFacts, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Look for tokens in the batch that the collator built from rows with text."""
        _require_tokens(model)
        if all(name.isdigit() for name in batch.inputs):
            raise NotApplicable("needs a batch with named inputs: the inputs in a tuple have no names")
        if not dataset.text_columns or _any_tokens(tuple(batch.inputs)):
            return None
        if any(name.endswith(IDS) for name in batch.inputs if name not in NO_TOKENS):
            raise NotApplicable("needs a batch whose keys match the model's input names")
        arrived = (*batch.inputs, batch.labels_name) if batch.labels_name else tuple(batch.inputs)
        return self._raw(arrived, dataset.text_columns, "reached the batch")

    @check
    def from_crash(self, crash: CrashFacts, symptom: TokensMissing) -> Finding | None:
        """Name what arrived instead of tokens, or report what the text does not show."""
        received = symptom.received
        if received is not None and _any_tokens(received):
            return None
        verb = "were passed on" if received is not None and len(received) > 1 else "was passed on"
        return self._raw(received, symptom.text_columns, verb, crash)

    @check
    def from_text(self, crash: CrashFacts, symptom: TextInInputs) -> Finding | None:
        """Report that a string reached a layer."""
        held = f"plain text ({_columns(symptom.columns)})" if symptom.columns else "plain text"
        if symptom.reads_tokens:
            why = f", but the model expects token ids: {CAUSE}."
        else:
            why = (
                " where the model expects numbers. A layer computes with numbers, not strings. If the text "
                f"consists of sentences, {CAUSE}. If it consists of category names, convert them to integers "
                "first (keras.layers.StringLookup)."
            )
        return self.found(
            f"The rows contain {held}{why}",
            fix=_fix(symptom.columns),
            evidence={"arrived": None, "text_columns": list(symptom.columns) or None},
            where=crash.where,
        )

    def _raw(
        self,
        arrived: Sequence[str] | None,
        text_columns: Sequence[str] | None,
        verb: str,
        crash: CrashFacts | None = None,
    ) -> Finding:
        text = _to_tokenize(text_columns or ())
        held = f"contain plain text ({_columns(text)}) but no input_ids" if text else "contain no input_ids"
        if arrived is not None:
            held += f": only {listed(map(repr, arrived))} {verb}" if arrived else f": nothing {verb}"
        unknown = ""
        if text_columns is None and crash is not None:
            unknown = " " + not_known("the names of the text columns", crash.live)
        return self.found(
            f"The rows {held}. The model expects token ids, not strings: {CAUSE}.{unknown}",
            fix=_fix(text),
            evidence={
                "arrived": None if arrived is None else list(arrived),
                "text_columns": None if text_columns is None else list(text),
            },
            where=crash.where if crash is not None else None,
        )


def _require_tokens(model: ModelFacts) -> None:
    if "input_ids" not in model.input_names:
        raise NotApplicable("needs a model that is known to accept input_ids")


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {listed(map(repr, names))}"


def _any_tokens(names: Sequence[str]) -> bool:
    return any(name in names for name in TOKENS)


def _to_tokenize(text_columns: Sequence[str]) -> tuple[str, ...]:
    """Leave out labels written as words, unless nothing else is text."""
    return tuple(name for name in text_columns if name not in LABELS) or tuple(text_columns)


def _fix(text_columns: Sequence[str]) -> Fix:
    # A tokenizer takes one text or a pair; with more columns, only the user knows which to tokenize.
    columns = text_columns if 1 <= len(text_columns) <= 2 else ("text",)
    texts = ", ".join(f'rows["{name}"]' for name in columns)
    return (
        f"tokenized = dataset.map(lambda rows: tokenizer({texts}, truncation=True), batched=True), and train on "
        "tokenized",
        "if you have already tokenized the data, pass the tokenized dataset",
    )
