"""See `UnbatchableExample`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash import setup as facts


class UnbatchableExample(MessageRule):
    """A value in the dataset cannot be batched, or a mapping changes the number of rows.

    ## What it does
    Recognises the errors of PyTorch's default collate function and of `Dataset.map`, and names the class or
    column that causes them.

    ## Why it is bad
    The default collate function stacks tensors, arrays and numbers; it cannot stack None, PIL images or custom
    objects. A batched function passed to `Dataset.map` may return more rows than it received, but then the
    columns that it does not return are too short.

    ## Example
    ```python
    def __getitem__(self, index):
        if self.paths[index].exists():
            return load(self.paths[index])         # None for a missing file
    ```

    ## Instead
    ```python
    self.paths = [path for path in paths if path.exists()]
    ```

    ## Thresholds
    None: the rule fires only after batching or mapping has failed.

    ## Known problems
    The message does not show which example causes the error.

    ## Sources
    The documentation for `torch.utils.data.default_collate` and `datasets.Dataset.map` ("Batch mapping").
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: facts.UnbatchableExample) -> Finding | None:
        """Name the value or the column."""
        message, fix = _of_rows(symptom) if symptom.rows is not None else _of_type(symptom.what)
        return self.found(
            message,
            fix=fix,
            evidence={"kind": symptom.kind, "what": symptom.what, "rows": symptom.rows and list(symptom.rows)},
            where=crash.where,
        )


def _of_type(what: str) -> tuple[str, Fix]:
    if what == "NoneType":
        return (
            "An example contains None, but a batch needs tensors, arrays or numbers. Either __getitem__ returned "
            "nothing for this example, or one of its values is missing.",
            (
                "return a value on every path through __getitem__; remove unusable rows when you build the "
                "dataset",
                "write a collate_fn that drops these examples: default_collate([x for x in batch if x is not "
                "None])",
                "leave out optional values instead of returning None",
            ),
        )
    if what.startswith("PIL."):
        return (
            f"The examples are PIL images ({what}), but a batch needs tensors.",
            (
                "use transforms.ToTensor() as the last transform",
                "torch.from_numpy(numpy.asarray(image))",
            ),
        )
    return (
        f"The examples contain a {what} object, which cannot be batched: a batch needs tensors, arrays, numbers, "
        "strings, or tuples and dicts of them.",
        (
            "convert the object to a tensor in __getitem__",
            "pass a collate_fn that collects these objects in a list: DataLoader(..., collate_fn=...)",
            *(("use PyTorch Geometric's own DataLoader",) if what.startswith("torch_geometric.") else ()),
        ),
    )


def _of_rows(symptom: facts.UnbatchableExample) -> tuple[str, Fix]:
    expected, got = symptom.rows or (0, 0)
    return (
        f"The columns have different lengths: {symptom.what} has {got:,} rows, but the other columns have "
        f"{expected:,}. A batched function in Dataset.map returned a different number of rows than it "
        "received, and some of the old columns were kept.",
        (
            "dataset.map(function, batched=True, remove_columns=dataset.column_names)",
            "return every column with the same number of rows (attention_mask as well as input_ids)",
        ),
    )
