"""See `ConstantInputs`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import TargetHistory
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.text.join import capitalized, listed

MIN_EXAMPLES = 8  # fewer examples may be equal by chance
MIN_EXAMPLES_COLUMN = 32  # a category with a share of 10% is absent from 32 rows with probability 0.03
MAX_FEATURES = 1000  # wider inputs are images or spectra, with dark borders
COLUMNS_NAMED = 5
BLANK = 0.02  # share of the rows; their targets cannot be learned, but fewer do little harm
MIN_BLANK = 8  # rows; a few blank ones may be real
UNUSUAL = 0.01  # share of the numbers in other rows; a more common value is a background

# Name parts of inputs that are usually the same for all examples.
CONSTANT_BY_NATURE = ("mask", "bias", "position", "type_id", "segment", "weight", "length")

MANY = 1000  # examples in a batch; a column that is the same in this many is constant, or nearly so
ONLY = " Only these {} rows were read; other rows may differ."
CHECK = (
    "first check the whole dataset with table.std(axis=0) == 0, and drop only the columns that are constant in "
    "all rows"
)
DROP = "drop the columns that are constant over the whole dataset: table.std(axis=0) == 0"


class ConstantInputs(Rule):
    """An input, or one of its columns, is the same for every example.

    ## What it does
    Compares the examples in one batch. The rule fires if all inputs, or one floating-point input, are identical
    across examples, or if a table has constant columns. In a watched run, it also looks for blank rows: rows that
    are filled with a single value, such as 0, but have different targets.

    ## Why it is bad
    If all inputs are constant, the model can only learn a constant prediction. A single constant column is
    harmless in itself but often a sign of a mistake: a file that was never read, a column filled with a default, a
    division by a standard deviation of 0.

    ## Example
    ```python
    images = np.zeros((len(paths), 32, 32, 3), dtype=np.float32)
    for path in paths:
        image = read_image(path)                # read, but never written to the array
    ```

    ## Instead
    ```python
    images = np.zeros((len(paths), 32, 32, 3), dtype=np.float32)
    for row, path in enumerate(paths):
        images[row] = read_image(path)
    ```

    ## Thresholds
    There must be at least 8 examples. Single columns are checked if there are at least 32 examples and at most
    1000 columns. The severity depends on what is constant:

    - If all inputs are equal and the labels differ, the finding is an error.
    - If all inputs are equal, but the labels are also equal or are unknown, the finding is a warning. It is also a
      warning if later rows of an unshuffled dataset differ.
    - If only some inputs or columns are constant, the finding is a note.

    Blank rows are reported if there are at least 8 of them, with at least 16 values each, and if they make up at
    least 2% of the sampled rows. They must have at least two different targets. The value that fills them must
    make up at most 1% of the values in the other rows.

    ## Known problems
    Only one batch is checked, so a column that rarely changes looks constant. Columns that are constant at 0, or
    at the table's smallest value, are not reported, because rare categories look the same. Constant integers, and
    constant inputs named after masks, positions, lengths, weights or token types, are reported only if all other
    inputs are constant too.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "become one with the data"; scikit-learn's
    documentation for `sklearn.feature_selection.VarianceThreshold`.
    """

    severity = "error"
    causes = ("ignores-input", *NO_LEARNING)

    @check
    def from_batch(self, batch: BatchFacts, dataset: DatasetFacts | None = None) -> Finding | None:
        """Compare the examples of one batch."""
        arrays = {
            name: values
            for name, values in batch.inputs.items()
            if values.shape[:1] == (batch.size,) and values.size and not _constant_by_nature(name)
        }
        floats = {name: values for name, values in arrays.items() if values.dtype.kind == "f"}
        blank = bool(arrays) and all(v.ndim > 2 for v in arrays.values()) and _one_value(arrays) is not None
        if not floats and not blank:
            raise NotApplicable("needs floating-point inputs")
        if batch.size < MIN_EXAMPLES:
            raise NotApplicable(f"needs a batch of at least {MIN_EXAMPLES} examples")
        alike = [name for name, values in floats.items() if (values == values[:1]).all()]
        if blank or (alike and all((values == values[:1]).all() for values in arrays.values())):
            return self._all_alike(batch, arrays, dataset)
        if alike:
            return self._one_alike(batch, alike)
        return self._columns(batch, floats)

    @check
    def from_rows(self, targets: TargetHistory) -> Finding | None:
        """Look for blank rows among the training rows."""
        found = targets.blank
        if found is None or found.blank < max(MIN_BLANK, BLANK * found.rows):
            return None
        if found.different_targets < 2 or found.elsewhere > UNUSUAL:
            return None
        return self.found(
            f"{found.blank} of the {found.rows} training rows sampled ({found.blank / found.rows:.0%}) contain "
            f"only the value {found.value:g}, which is rare in the other rows. These {found.blank} rows have "
            f"{found.different_targets} different targets. The model cannot tell these rows apart, so it "
            "can only learn one prediction for all of them.",
            fix=(
                "look for code that substitutes a blank row, such as an except clause around a file read",
                "remove these rows from the dataset",
            ),
            evidence={
                "rows": found.rows,
                "blank": found.blank,
                "value": found.value,
                "different_targets": found.different_targets,
            },
            severity="warning",
        )

    def _all_alike(self, batch: BatchFacts, arrays: Mapping[str, Array], dataset: DatasetFacts | None) -> Finding:
        labels = batch.labels
        differ = labels is not None and labels.shape[:1] == (batch.size,) and bool((labels != labels[:1]).any())
        number = len(np.unique(labels, axis=0)) if differ and labels is not None else 1
        value = _one_value(arrays)
        what = f" (every value is {value:g})" if value is not None else ""
        return self.found(
            f"All {batch.size} examples in this batch have the same input{what}"
            + (f" but {number} different labels. " if differ else ". ")
            + "The model cannot distinguish them, so it can only learn a constant prediction.",
            fix=(
                "check the rows before batching: the code that creates them probably reads the same row every "
                "time, or leaves the rows empty"
            ),
            evidence={"inputs": list(arrays), "examples": batch.size, "different_labels": number, "value": value},
            severity="error" if differ and not _may_differ_later(dataset) else "warning",
        )

    def _one_alike(self, batch: BatchFacts, alike: list[str]) -> Finding:
        one = len(alike) == 1
        return self.found(
            f"{capitalized(listed(map(_called, alike)))} {'is' if one else 'are'} the same for all {batch.size} "
            f"examples in this batch, so the model can learn nothing from {'it' if one else 'them'}. That is fine "
            "for a coordinate grid or an initial state, but not for a feature.",
            fix="if this input is a feature, check the code that creates it: the real values were lost",
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
            they = "it" if one else "them"
            shown = ", ".join(map(str, columns[:COLUMNS_NAMED])) + (", …" if columns[COLUMNS_NAMED:] else "")
            return self.found(
                f"{len(columns)} of the {table.shape[1]} columns of {_called(name)} {'is' if one else 'are'} "
                f"constant over all {batch.size} examples in this batch: {'column' if one else 'columns'} {shown} "
                f"(counting from 0). The model can learn nothing from {they}, and standardising {they} divides by "
                f"0.{ONLY.format(batch.size) if batch.size < MANY else ''}",
                fix=(
                    DROP if batch.size >= MANY else CHECK,
                    "fix the code that creates these columns",
                ),
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
    """Return whether later rows of the dataset differ from the equal ones at its beginning."""
    return dataset is not None and (dataset.distinct_rows or 1) > 1 and not dataset.shuffled


def _constant_by_nature(name: str) -> bool:
    return any(part in name.lower() for part in CONSTANT_BY_NATURE)


def _called(name: str) -> str:
    return f"input {name}" if name.isdigit() else f"input '{name}'"


def _constant_columns(table: Array) -> list[int]:
    """Return the constant columns of a table (size, features), except those at 0 or at its smallest value."""
    first: npt.NDArray[np.floating] = table[0]
    background = (first == 0) | (first == table.min())
    return [int(column) for column in np.flatnonzero((table == first).all(axis=0) & ~background)]


def _one_value(arrays: Mapping[str, Array]) -> float | None:
    """Return the value of all elements of all inputs, if they are equal."""
    values = {float(value) for array in arrays.values() for value in (array.min(), array.max())}
    return values.pop() if len(values) == 1 else None
