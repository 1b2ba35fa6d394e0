"""See `RepeatedBatch`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import Array, BatchFacts, DatasetFacts
from diagnostics.facts.training import StepHistory

MIN_ROWS = 8  # all alike: fewer rows may be an experiment
MANY_ROWS = 64
FEW = 0.05  # distinct rows among many read
BATCHES = 4  # as many rows as so many batches were read, and all are those of one
STEPS = 20  # of a watched run, all with the same batch
WIDE = 16  # scalars in a row: narrow rows repeat by nature


class RepeatedBatch(Rule):
    """Every step sees the same rows again.

    ## What it does
    Counts how many of the training rows read differ from each other in their inputs. Speaks up if all are the
    same, or if they are no more than one batch's worth although many were read. In a run that is watched it
    compares what the model was given in each step.

    ## Why it is bad
    The dataset claims many rows and gives out one, or a generator hands out its first batch for ever. The
    model learns these few by heart: training loss falls quickly to nothing, and nothing is learned about any
    other row. Nothing fails.

    ## Example
    ```python
    class Reviews(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return self.tokens[0], self.labels[0]          # the index is never used
    ```

    ## Instead
    ```python
    class Reviews(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return self.tokens[index], self.labels[index]
    ```

    ## Thresholds
    All of at least 8 rows alike. Or, of at least 64 rows read and at least 4 batches' worth, no more distinct
    ones than one batch holds, and these fewer than 5% of the rows or exactly as many as a batch has examples.
    All numbers are ours. In a watched run: at least 20 steps, all of them on the same batch. That is only a note,
    because a dataset may fit into one batch, and a batch may be repeated on purpose.

    ## Known problems
    A table with few columns has few possible rows, and these repeat by nature. So the second way judges only
    rows of at least 16 numbers that are token ids, images or sequences, or that hold fractions. A toy dataset
    made of a few sentences over and over is reported, and so is a batch repeated on purpose to see whether the
    model can learn it by heart. Rows that are augmented at random differ although one row stands behind them
    all. In a watched run two batches are the same if some 1,000 numbers of each input are, in the same order.

    ## Sources
    The documentation of `torch.utils.data.Dataset` (`__getitem__`) and of `keras.utils.PyDataset`; Andrej
    Karpathy, "A Recipe for Training Neural Networks" (2019), "become one with the data".
    """

    severity = "warning"
    causes = ("overfitting", "constant-predictions")
    no_exhibit = "the loss falls as it should, so a script of it would show nothing until it is evaluated"

    @check
    def from_dataset(self, dataset: DatasetFacts) -> Finding | None:
        """Look whether all rows read are the same."""
        distinct, rows = _counted(dataset)
        if distinct != 1:
            return None
        return self.found(
            f"All {rows:,} training rows read have the same inputs. Each step then sees the same thing again, "
            "and the model learns nothing about any other row. Most often __getitem__ or a generator ignores "
            "which row was asked for.",
            fix="return self.rows[index] in __getitem__, with the index that was asked for",
            evidence={"distinct_rows": distinct, "rows_read": rows, "size": dataset.size},
        )

    @check
    def from_batch(self, dataset: DatasetFacts, batch: BatchFacts) -> Finding | None:
        """Look whether all rows read are those of one batch."""
        distinct, rows = _counted(dataset)
        if rows < max(MANY_ROWS, BATCHES * batch.size):
            raise NotApplicable(f"needs at least {MANY_ROWS} rows and {BATCHES} batches' worth of them")
        if not 1 < distinct <= batch.size or not (distinct < FEW * rows or distinct == batch.size):
            return None
        if not _rarely_repeat(batch):
            return None
        return self.found(
            f"Of {rows:,} training rows read only {distinct} differ from each other in their inputs, and a "
            f"batch has {batch.size} examples: every batch is made of the same few rows. Most often a "
            "generator hands out one batch over and over, or __getitem__ uses only part of its index.",
            fix="print the inputs of the first two batches side by side, and make what yields them go on "
            "to the next rows",
            evidence={
                "distinct_rows": distinct,
                "rows_read": rows,
                "size": dataset.size,
                "batch_size": batch.size,
            },
        )

    @check
    def from_history(self, steps: StepHistory) -> Finding | None:
        """Look whether the model was given the same in every step."""
        prints = steps.batch_fingerprints
        if (prints != 0).sum() < STEPS:
            raise NotApplicable(f"needs {STEPS} steps whose batches were seen")
        if (steps.passes > 1).any():
            raise NotApplicable("needs steps of one pass each: of an accumulation only the last batch is compared")
        if (prints != prints[0]).any():
            return None
        size = int(steps.batch_sizes[-1])
        of = f" of {size:,} examples" if size else ""
        return self.found(
            f"All {steps.total_steps:,} steps were made on one and the same batch{of}, in the same order. "
            "That is right if these are all the examples there are, or to see whether the model can learn "
            "them by heart. Otherwise the model learns nothing about any other example.",
            fix="for batch in loader: ...  # and not next(iter(loader)), which begins again with the first batch",
            evidence={"steps": steps.total_steps, "batch_size": size or None},
            severity="note",
        )


def _counted(dataset: DatasetFacts) -> tuple[int, int]:
    if dataset.distinct_rows is None:
        raise NotApplicable("needs rows that can be compared")
    if dataset.rows_read < MIN_ROWS:
        raise NotApplicable(f"needs at least {MIN_ROWS} rows")
    return dataset.distinct_rows, dataset.rows_read


def _rarely_repeat(batch: BatchFacts) -> bool:
    """Whether rows of this kind are all different as a rule."""
    return any(_varied(values, values is batch.token_ids) for values in batch.inputs.values())


def _varied(values: Array, tokens: bool) -> bool:
    if values.ndim < 2 or math.prod(values.shape[1:]) < WIDE:
        return False
    fractions = values.dtype.kind == "f" and bool((values != np.round(values)).any())
    return tokens or values.ndim > 2 or fractions
