"""See `UnstableBatch`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding, Severity
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import Array, ModelFacts, RereadFacts

LABELS = ("labels", "label", "label_ids")  # which a loss takes, though the model may not
ROUNDING = 1e-5  # relative: a mean taken in another order differs by less in single precision


class UnstableBatch(Rule):
    """The same rows, read a second time, make another batch.

    ## What it does
    Copies dataset and collator. One copy reads the rows of a batch for the first time; the other has read them
    once before. All generators of random numbers are in the same state, so random augmentation draws the same
    both times. If the two batches differ all the same, reading has changed what is read.

    ## Why it is bad
    A list, an array or a dict that stands in the dataset is handed out, and somebody edits it: the collator
    appends to it, or normalises it in place. The first epoch is right. In the second the edit is made on the
    edited row, in the third once more, and training sees less and less of the data that you loaded. Nothing
    fails, and a look at the first batch shows nothing.

    ## Example
    ```python
    def collate(rows):
        for row in rows:
            row["input_ids"].append(tokenizer.sep_token_id)      # the list that stands in the dataset
        return tokenizer.pad(rows, return_tensors="pt")
    ```

    ## Instead
    ```python
    def collate(rows):
        rows = [{**row, "input_ids": row["input_ids"] + [tokenizer.sep_token_id]} for row in rows]
        return tokenizer.pad(rows, return_tensors="pt")
    ```

    ## Thresholds
    Whole numbers have to be equal, others to agree in five digits (ours): that is what rounding leaves. Inputs
    that the model's forward does not take are not compared. A second reading that raises is an error; where
    worker processes begin each epoch with a fresh copy, the finding is only a note, since the edits are lost with
    them.

    ## Known problems
    Not judged: data that counts or collects what was read (a curriculum, a buffer), randomness from a source
    that cannot be put back, streams, and datasets over 256 MiB or two million objects, of which no copies are
    made. What a dataset keeps outside itself, in a global variable, is not copied either. An edit that gives the
    same when it is made twice, such as padding to the length of the same batch, is not seen. Somebody who trains
    for one epoch reads each row once, and is not harmed.

    ## Sources
    NumPy's documentation, "Copies and views"; the documentation of `torch.utils.data` (`collate_fn`,
    `persistent_workers`); Chase Roberts, "How to unit test machine learning code" (2017).
    """

    severity = "warning"
    causes = ("loss-divergence", "loss-oscillation", "ragged-batch", "truncated-inputs")

    @check
    def from_reread(self, reread: RereadFacts, model: ModelFacts | None = None) -> Finding | None:
        """Hold the two batches against each other."""
        if reread.unjudged is not None:
            raise NotApplicable(reread.unjudged)
        who = f"the {reread.culprit} ({reread.name})"
        if reread.raised is not None:
            return self._finding(
                reread,
                f"The rows of a batch could be read once. Read a second time, they raised "
                f"{reread.raised.rstrip('.')}. So {who} takes away from what stands in the dataset, and the next "
                "epoch misses it.",
                {"raised": reread.raised},
                severity="error",
            )
        compared = [name for name in reread.first if model is None or _enters(name, model)]
        changed = [name for name in compared if not _equal(reread.first[name], reread.again.get(name))]
        if not changed:
            return None
        one, other = reread.first[changed[0]], reread.again.get(changed[0])
        others = f" The same goes for {_listed(changed[1:])}." if changed[1:] else ""
        edits = (
            "edits the rows that it is given, and these stand in the dataset"
            if reread.culprit == "collator"
            else "changes what it holds when a row is read"
        )
        lengths = _token_counts(reread)
        return self._finding(
            reread,
            f"The same {_rows(reread)}, read twice with the same random numbers, made two different batches: "
            f"{_difference(changed[0], one, other)}{lengths}.{others} {who[0].upper()}{who[1:]} {edits}, so each "
            "epoch trains on rows that the one before has changed.",
            {
                "changed": changed,
                "rows": reread.rows,
                "first_shape": list(one.shape),
                "second_shape": None if other is None else list(other.shape),
            },
        )

    def _finding(
        self, reread: RereadFacts, message: str, evidence: dict[str, object], severity: Severity | None = None
    ) -> Finding:
        if reread.fresh_workers:
            message += (
                " The loader's worker processes begin each epoch with a fresh copy, which hides it for now; with "
                "num_workers=0 or persistent_workers=True it shows."
            )
        return self.found(
            message,
            fix=(
                "copy before you edit, in the collator: rows = copy.deepcopy(rows)"
                if reread.culprit == "collator"
                else "copy before you edit, in __getitem__: row = copy.deepcopy(self.rows[index])"
            ),
            evidence={
                **evidence,
                "culprit": reread.culprit,
                "name": reread.name,
                "fresh_workers": reread.fresh_workers,
            },
            severity="note" if reread.fresh_workers else severity,
        )


def _enters(name: str, model: ModelFacts) -> bool:
    """Whether an entry of a batch is taken by the model; parts of a tuple have no names to know them by."""
    first = name.partition(".")[0]
    return not model.input_names or first.isdigit() or first in (*model.input_names, *LABELS)


def _called(name: str) -> str:
    """Call an entry by its name; where only a tuple holds it, by its place."""
    place, _, inner = name.partition(".")
    return f"part {name} of the batch" if name.isdigit() else inner if place.isdigit() else name


def _equal(one: Array, other: Array | None) -> bool:
    if other is None or one.shape != other.shape:
        return False
    if one.dtype.kind in "biu" and other.dtype.kind in "biu":
        return bool((one == other).all())
    return bool(np.allclose(one, other, rtol=ROUNDING, atol=0, equal_nan=True))


def _difference(name: str, one: Array, other: Array | None) -> str:
    called = _called(name)
    if other is None:
        return f"{called} was there at first, and missing the second time"
    if one.shape != other.shape:
        return f"{called} had the shape {one.shape} at first, and {other.shape} the second time"
    if not one.ndim:
        return f"{called} was {one:.6g} at first, and {other:.6g} the second time"
    unequal = ~np.isclose(one, other, rtol=ROUNDING, atol=0, equal_nan=True)
    rows = np.flatnonzero(unequal.reshape(len(one), -1).any(1))
    seen = f"{called} differs in {len(rows):,} of {len(one):,} rows"
    if one.ndim == 1 or one.dtype.kind == "f":
        place = tuple(int(axis[0]) for axis in np.nonzero(unequal))
        return f"{seen}, in row {rows[0]} {_short(one[place])} at first and {_short(other[place])} then"
    return f"{seen}, in row {rows[0]} in {int(unequal[rows[0]].sum()):,} of {one[0].size:,} places"


def _short(value: np.generic) -> str:
    return f"{value:.4g}" if isinstance(value, np.floating) else str(value)


def _token_counts(reread: RereadFacts) -> str:
    """Say for the first row whose number of tokens changed how many it had."""
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
    return "batch" if reread.rows is None else f"{reread.rows:,} row{'s' if reread.rows != 1 else ''}"


def _listed(names: list[str]) -> str:
    called = [_called(name) for name in names]
    return called[0] if len(called) == 1 else f"{', '.join(called[:-1])} and {called[-1]}"
