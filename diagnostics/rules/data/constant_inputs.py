"""See `ConstantInputs`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import Array, BatchFacts, DatasetFacts

MIN_EXAMPLES = 8  # fewer may be alike by chance
MIN_EXAMPLES_COLUMN = 32  # a category of one row in ten is absent from as many with probability 0.03
MAX_FEATURES = 1000  # a table has no more; what has is an image or a spectrum, with dark borders
COLUMNS_NAMED = 5

# Parts of names of inputs that are the same for all examples by nature.
CONSTANT_BY_NATURE = ("mask", "bias", "position", "type_id", "segment", "weight", "length")


class ConstantInputs(Rule):
    """An input, or a column of it, is the same for every example.

    ## What it does
    Compares the examples of one batch with each other: are all inputs the same for all of them, is one
    floating-point input, or has a table columns that never change?

    ## Why it is bad
    What never changes tells nothing. If that is all the model gets to see, it can only give one answer to
    everything; different labels for it contradict each other. A single constant column is harmless in itself,
    but often the trace of a mistake: a file not read, a column filled with a default, a standard deviation
    of 0 that something is about to be divided by.

    ## Example
    ```python
    images = np.zeros((len(paths), 32, 32, 3), dtype=np.float32)
    for path in paths:
        image = read_image(path)                # read, and never put into the array
    ```

    ## Instead
    ```python
    images = np.zeros((len(paths), 32, 32, 3), dtype=np.float32)
    for row, path in enumerate(paths):
        images[row] = read_image(path)
    ```

    ## Thresholds
    At least 8 examples, and at least 32 for single columns; tables of at most 1000 columns (ours). All inputs
    alike is an error if the labels differ; a warning if they are alike as well or are not known, or if an
    unshuffled dataset has other rows further on. One of several inputs, or some columns, is a note.

    ## Known problems
    One batch is looked at: a column that seldom changes looks constant in it. Columns constant at 0, or at the
    least value of the table, are left out, because rare categories and the borders of images look like that.
    Integers, and inputs named like masks, positions, lengths, weights and token types, may well be constant and
    are judged only together with all others. A batch repeated on purpose is reported.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "become one with the data"; scikit-learn's
    documentation of `sklearn.feature_selection.VarianceThreshold`.
    """

    severity = "error"
    causes = ("ignores-input", *NO_LEARNING)
    no_exhibit = "the data of the zoo is text, where a constant input would be one sentence over and over"

    @check
    def from_batch(self, batch: BatchFacts, dataset: DatasetFacts | None = None) -> Finding | None:
        """Compare the examples of one batch."""
        arrays = {
            name: values
            for name, values in batch.inputs.items()
            if values.shape[:1] == (batch.size,) and values.size and not _constant_by_nature(name)
        }
        floats = {name: values for name, values in arrays.items() if values.dtype.kind == "f"}
        if not floats:
            raise NotApplicable("needs inputs that are floating-point numbers")
        if batch.size < MIN_EXAMPLES:
            raise NotApplicable(f"needs a batch of at least {MIN_EXAMPLES} examples")
        alike = [name for name, values in floats.items() if (values == values[:1]).all()]
        if alike and all((values == values[:1]).all() for values in arrays.values()):
            return self._all_alike(batch, arrays, dataset)
        if alike:
            return self._one_alike(batch, alike)
        return self._columns(batch, floats)

    def _all_alike(self, batch: BatchFacts, arrays: Mapping[str, Array], dataset: DatasetFacts | None) -> Finding:
        labels = batch.labels
        differ = labels is not None and labels.shape[:1] == (batch.size,) and bool((labels != labels[:1]).any())
        number = len(np.unique(labels, axis=0)) if differ and labels is not None else 1
        value = _one_value(arrays)
        what = f" and hold nothing but {value:g}" if value is not None else ""
        return self.found(
            f"All {batch.size} examples in this batch have the same input{what}"
            + (f", and they carry {number} different labels. " if differ else ". ")
            + "Nothing tells one example from another, so the model can only give one answer to all of them.",
            fix="look at the rows before they are batched: the code that fills them reads one row for "
            "all, or none",
            evidence={"inputs": list(arrays), "examples": batch.size, "different_labels": number, "value": value},
            severity="error" if differ and not _may_differ_later(dataset) else "warning",
        )

    def _one_alike(self, batch: BatchFacts, alike: list[str]) -> Finding:
        names = " and ".join(map(_called, alike))
        one = len(alike) == 1
        return self.found(
            f"{names[0].upper()}{names[1:]} {'is' if one else 'are'} the same for all {batch.size} "
            "examples in this "
            f"batch, so nothing can be learned from {'it' if one else 'them'}. A grid of coordinates or a "
            "first state "
            "may be meant so; a feature is not.",
            fix="check what fills it; if it is meant to be a feature, its values got lost on the way",
            evidence={"inputs": alike, "examples": batch.size},
            severity="note",
        )

    def _columns(self, batch: BatchFacts, floats: Mapping[str, Array]) -> Finding | None:
        if batch.size < MIN_EXAMPLES_COLUMN:
            return None
        for name, table in floats.items():
            if table.ndim != 2 or not 1 < table.shape[1] <= MAX_FEATURES:
                continue
            columns = _constant_columns(table)
            if not columns:
                continue
            one = len(columns) == 1
            shown = ", ".join(map(str, columns[:COLUMNS_NAMED])) + (", …" if columns[COLUMNS_NAMED:] else "")
            return self.found(
                f"{len(columns)} of the {table.shape[1]} columns of {_called(name)} "
                f"{'is' if one else 'are'} the same for all {batch.size} examples in this batch: "
                f"{'column' if one else 'columns'} {shown}, counted from 0. Nothing can be learned from "
                f"{'it' if one else 'them'}, and a division by {'its' if one else 'their'} standard "
                "deviation is one by 0.",
                fix="table.std(axis=0) == 0 over the whole dataset shows whether they ever change; drop those "
                "that do not, or mend what fills them",
                evidence={
                    "input": name,
                    "columns": columns[:COLUMNS_NAMED],
                    "constant_columns": len(columns),
                    "num_columns": int(table.shape[1]),
                    "examples": batch.size,
                },
                severity="note",
            )
        return None


def _may_differ_later(dataset: DatasetFacts | None) -> bool:
    """Whether other rows differ, in a dataset that may begin with equal ones."""
    return dataset is not None and (dataset.distinct_rows or 1) > 1 and not dataset.shuffled


def _constant_by_nature(name: str) -> bool:
    return any(part in name.lower() for part in CONSTANT_BY_NATURE)


def _called(name: str) -> str:
    return f"input {name}" if name.isdigit() else name


def _constant_columns(table: Array) -> list[int]:
    """Return the columns of a table (size, features) that never change, but those at 0 or at the least value."""
    first: npt.NDArray[np.floating] = table[0]
    background = (first == 0) | (first == table.min())
    return [int(column) for column in np.flatnonzero((table == first).all(axis=0) & ~background)]


def _one_value(arrays: Mapping[str, Array]) -> float | None:
    """Return the value that all places of all inputs hold, if it is one."""
    values = {float(value) for array in arrays.values() for value in (array.min(), array.max())}
    return values.pop() if len(values) == 1 else None
