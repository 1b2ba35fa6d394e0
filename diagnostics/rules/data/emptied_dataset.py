"""See `EmptiedDataset`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import EmptyDatasetCrash


class EmptiedDataset(MessageRule):
    """The dataset has no rows or no columns left.

    ## What it does
    Recognises the error raised when a row is requested from a dataset of size 0.

    ## Why it is bad
    There is nothing to train on. transformers' `Trainer` drops every column that is not an argument of the
    model's `forward`; if none is left, the dataset has size 0, but the sampler still draws row numbers. Other
    causes are a filter that matched nothing, a path that matched no file, and an empty split.

    ## Example
    ```python
    trainer = Trainer(model, args, train_dataset=raw)            # columns: text, category
    ```

    ## Instead
    ```python
    rows = raw.map(tokenize, batched=True).rename_column("category", "labels")
    trainer = Trainer(model, args, train_dataset=rows)
    ```

    ## Thresholds
    None: the rule fires only after a row has been requested.

    ## Known problems
    The error message does not show what emptied the dataset.

    ## Sources
    The documentation for `transformers.TrainingArguments` (`remove_unused_columns`) and
    `torch.utils.data.RandomSampler`.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: EmptyDatasetCrash) -> Finding | None:
        """Report that nothing is left, and what may have removed it."""
        columns: Fix = (
            'tokenize the dataset, name the target column "labels", and check trainer.train_dataset.column_names',
            "if your collator creates the inputs: TrainingArguments(remove_unused_columns=False)",
        )
        rows: Fix = (
            "print(len(dataset)) after each step that builds the dataset: loading, filtering and splitting",
            "assert len(dataset) > 0 before creating the loader",
        )
        if symptom.index is not None:
            return self.found(
                f"The dataset is empty, but row {symptom.index} was requested. Trainer removes all columns that "
                "the model's forward method does not accept, and a Hugging Face dataset without columns has no "
                "rows.",
                fix=(*columns, rows[0]),
                evidence={"index": symptom.index},
                where=crash.where,
            )
        return self.found(
            "The data loader got an empty dataset: the path matches no file, a filter removes every row, or "
            "the split is empty.",
            fix=rows,
            evidence={"index": None},
            where=crash.where,
        )
