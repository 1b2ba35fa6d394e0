"""See `EmptiedDataset`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class EmptiedDataset(MessageRule):
    """The dataset has no rows or no columns left.

    ## What it does
    Recognises the error raised when a row is requested from a dataset of size 0.

    ## Why it is bad
    There is nothing to train on. The `Trainer` of transformers drops every column that is not an argument of the
    model's `forward`; if no column is left, the dataset has size 0. Other causes are a filter that matched
    nothing, a path that matched no file, and an empty split.

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
    None: the rule fires only after loading a row has failed.

    ## Known problems
    The error message does not show what emptied the dataset.

    ## Sources
    The documentation for `transformers.TrainingArguments` (`remove_unused_columns`) and
    `torch.utils.data.RandomSampler`.
    """

    severity = "error"
