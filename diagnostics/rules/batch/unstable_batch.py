"""See `UnstableBatch`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding, Severity
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import Verdicts
from diagnostics.facts.data import RereadFacts
from diagnostics.facts.inputs import DrawnInputs, InputSample
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.text.join import among, capitalized, count_of, listed

LABELS = ("labels", "label", "label_ids")  # for the loss, even if the model does not take them
ROUNDING = 1e-5  # relative: a mean computed in another order differs by less in float32
NARROWER = 20.0  # times: a division repeated in each epoch, by 255 or by the standard deviation of pixels
BATCHES, ROWS = 3, 8  # least number of batches before and after, and of rows in each


class UnstableBatch(Rule):
    """The same rows give a different batch when they are read again.

    ## What it does
    Reads the rows of one batch through two copies of the dataset and the collator: once through the first copy,
    twice through the second. Before every read, all random number generators are reset to the same state. If the
    second copy's last batch differs from the first copy's batch, reading has changed the data. If the dataset
    cannot be copied, the rule checks whether the spread of the inputs shrinks permanently during the run.

    ## Why it is bad
    The dataset returns a list, array or dict that it also stores, and the collator appends to it, or normalises it
    in place. In the first epoch, the rows are correct. Each later epoch modifies them again, so the training data
    drifts further and further from the original. No error is raised, and the first batch looks right.

    ## Example
    ```python
    def collate(rows):
        for row in rows:
            # the list that the dataset stores
            row["input_ids"].append(tokenizer.sep_token_id)
        return tokenizer.pad(rows, return_tensors="pt")
    ```

    ## Instead
    ```python
    def collate(rows):
        end = [tokenizer.sep_token_id]
        rows = [{**row, "input_ids": row["input_ids"] + end} for row in rows]
        return tokenizer.pad(rows, return_tensors="pt")
    ```

    ## Thresholds
    A batch counts as changed if an integer differs, or if another number differs by more than 0.001%. If the
    second read raises an exception, the finding is an error. If worker processes start each epoch with a fresh
    copy of the dataset, the finding is only a note, because the changes are lost with the copy.

    The spread counts as shrunk if, after some step, the standard deviation of every batch (the median over
    channels) is less than 5% of the lowest standard deviation before that step. At least 3 batches must have been
    sampled before the step, and at least 3 after it.

    ## Known problems
    The rule does not check

    - streams,
    - datasets of more than 256 MiB or two million objects,
    - datasets that keep track of what was read (a curriculum, a buffer), or
    - datasets that draw random numbers from a source that cannot be reset.

    Training for a single epoch is not affected, because each row is read once. Noise that is annealed on purpose
    also shrinks the spread of the inputs.

    ## Sources
    NumPy's documentation, "Copies and views"; the documentation for `torch.utils.data` (`collate_fn`,
    `persistent_workers`); Chase Roberts, "How to unit test machine learning code" (2017).
    """

    severity = "warning"
    causes = ("loss-divergence", "loss-oscillation", "ragged-batch", "truncated-inputs")

    @check
    def from_reread(self, reread: RereadFacts, model: ModelFacts | None = None) -> Finding | None:
        """Compare the two batches."""
        if reread.unjudged is not None:
            raise NotApplicable(reread.unjudged)
        who = f"the {reread.culprit} ({reread.name})"
        if reread.raised is not None:
            return self._finding(
                reread,
                f"Reading the rows of a batch worked once. Reading them again raised {reread.raised.rstrip('.')}. "
                f"So {who} removes data from the dataset when it reads a row, and the next epoch will fail.",
                {"raised": reread.raised},
                severity="error",
            )
        compared = [name for name in reread.first if model is None or _enters(name, model)]
        changed = [name for name in compared if not _equal(reread.first[name], reread.again.get(name))]
        if not changed:
            return None
        one, other = reread.first[changed[0]], reread.again.get(changed[0])
        others = f" Also changed: {listed(map(_called, changed[1:]))}." if changed[1:] else ""
        edits = (
            "edits its rows in place, which changes the dataset"
            if reread.culprit == "collator"
            else "changes its stored data when a row is read"
        )
        lengths = _token_counts(reread)
        return self._finding(
            reread,
            f"Reading the same {_rows(reread)} twice with the same random seed gave two different batches: "
            f"{_difference(changed[0], one, other)}{lengths}.{others} {capitalized(who)} {edits}, so each epoch "
            "trains on rows already modified by the previous epoch.",
            {
                "changed": changed,
                "rows": reread.rows,
                "first_shape": list(one.shape),
                "second_shape": None if other is None else list(other.shape),
            },
        )

    @check
    def from_course(self, drawn: DrawnInputs, verdicts: Verdicts) -> Finding | None:
        """Compare the spread of the inputs in the first sampled steps with that in the last."""
        if not verdicts.trained_alone:
            raise NotApplicable("needs a run that trains only this model: another model may create its inputs")
        for name, sample in drawn.inputs.items():
            found = _narrowed(sample)
            if found is not None:
                count, before, after = found
                return self.found(
                    f"The scale of {_called(name)} shrank during the run: its standard deviation was "
                    f"{before:.3g} in the first {count} batches sampled, and {after:.3g} in the next "
                    f"{len(sample.batches) - count}. Normalising rows in place has this effect: each epoch "
                    "normalises rows that the previous epoch has already normalised.",
                    fix=(
                        "use x = (x - mean) / std, not x -= mean and x /= std, in __getitem__ and in transforms",
                        "copy the row before you edit it: row = self.rows[index].clone(), or .copy() in NumPy",
                    ),
                    evidence={"input": name, "before": before, "after": after, "batches_before": count},
                )
        return None

    def _finding(
        self, reread: RereadFacts, message: str, evidence: dict[str, object], severity: Severity | None = None
    ) -> Finding:
        if reread.fresh_workers:
            message += (
                " The loader's worker processes start each epoch with a fresh copy of the dataset, which hides "
                "the bug; it appears with num_workers=0 or persistent_workers=True."
            )
        return self.found(
            message,
            fix=(
                "copy the rows in the collator before you edit them: rows = copy.deepcopy(rows)"
                if reread.culprit == "collator"
                else "copy the row in __getitem__ before you edit it: row = copy.deepcopy(self.rows[index])"
            ),
            evidence={
                **evidence,
                "culprit": reread.culprit,
                "name": reread.name,
                "fresh_workers": reread.fresh_workers,
            },
            severity="note" if reread.fresh_workers else severity,
        )


def _narrowed(sample: InputSample) -> tuple[int, float, float] | None:
    """Return after how many batches the inputs became permanently narrower, and the deviations around it."""
    if sample.integers or any(len(batch) < ROWS for batch in sample.batches):
        return None
    flat = [np.moveaxis(batch, 1, 0).reshape(batch.shape[1], -1) for batch in sample.batches]
    widths = np.array([float(np.median(channels.astype(np.float64).std(axis=1))) for channels in flat])
    for count in range(BATCHES, len(widths) - BATCHES + 1):
        if 0 < NARROWER * widths[count:].max() < widths[:count].min():
            return count, float(np.median(widths[:count])), float(np.median(widths[count:]))
    return None


def _enters(name: str, model: ModelFacts) -> bool:
    """Return whether the model or the loss takes an entry of a batch; unnamed parts of a tuple always count."""
    first = name.partition(".")[0]
    return not model.input_names or first.isdigit() or first in (*model.input_names, *LABELS)


def _called(name: str) -> str:
    """Return the name of an entry; in a tuple, its position."""
    place, _, inner = name.partition(".")
    return f"batch[{name}]" if name.isdigit() else inner if place.isdigit() else name


def _equal(one: Array, other: Array | None) -> bool:
    if other is None or one.shape != other.shape:
        return False
    if one.dtype.kind in "biu" and other.dtype.kind in "biu":
        return bool((one == other).all())
    return bool(np.allclose(one, other, rtol=ROUNDING, atol=0, equal_nan=True))


def _difference(name: str, one: Array, other: Array | None) -> str:
    called = _called(name)
    if other is None:
        return f"{called} was present the first time and missing the second time"
    if one.shape != other.shape:
        return f"{called} had shape {one.shape} the first time and {other.shape} the second time"
    if one.size == 1:
        first, second = (_short(array.reshape(-1)[0], 6) for array in (one, other))
        return f"{called} was {first} the first time and {second} the second time"
    unequal = ~np.isclose(one, other, rtol=ROUNDING, atol=0, equal_nan=True)
    rows = np.flatnonzero(unequal.reshape(len(one), -1).any(1))
    single = len(one) == 1
    seen = f"{called} differs" + ("" if single else f" in {among(len(rows), len(one), 'row')}")
    if one.ndim == 1 or one.dtype.kind == "f":
        place = tuple(int(axis[0]) for axis in np.nonzero(unequal))
        where = "" if single else f" in row {rows[0]}"
        return f"{seen}; a value{where} was {_short(one[place])}, then {_short(other[place])}"
    values = f"in {among(int(unequal[rows[0]].sum()), one[0].size, 'value')}"
    return f"{seen} {values}" if single else f"{seen} ({values} of row {rows[0]})"


def _short(value: np.generic, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if isinstance(value, np.floating) else str(value)


def _token_counts(reread: RereadFacts) -> str:
    """Return the number of tokens before and after, for the first row in which it changed."""
    for name in ("attention_mask", "padding_mask"):
        one, other = reread.first.get(name), reread.again.get(name)
        if one is None or other is None or one.ndim != 2 or other.ndim != 2 or len(one) != len(other):
            continue
        counts = one.sum(1), other.sum(1)
        rows = np.flatnonzero(counts[0] != counts[1])
        if len(rows):
            row = int(rows[0])
            return f" (row {row} had {counts[0][row]:g} tokens, then {counts[1][row]:g})"
    return ""


def _rows(reread: RereadFacts) -> str:
    return "batch" if reread.rows is None else count_of(reread.rows, "row")
