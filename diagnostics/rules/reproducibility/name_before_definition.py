"""See `NameBeforeDefinition`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding, Severity
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.notebook import MissingName, NotebookFacts
from diagnostics.facts.where import Where
from diagnostics.text.join import capitalized, listed

NAMED = 5  # further names of one notebook


class NameBeforeDefinition(Rule):
    """A notebook uses a name before any cell defines it.

    ## What it does
    Reads the cells of a notebook file from top to bottom, without running them. Reports a name that is read, by a
    cell or by a function that the cell calls, even though no cell above defines the name.

    ## Why it is bad
    The kernel remembers what the notebook no longer shows: a cell that was deleted or edited after it was run, or
    a cell further down that was run first. The results cannot be reproduced. Running the notebook from top to
    bottom raises a NameError or, if another cell gives the name a different value, leads to different results.

    ## Example
    ```python
    # cell 1
    model = Net(hidden=128)
    # cell 2; the cell that made the optimizer was deleted:
    # optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    train(model, optimizer, epochs=5)
    ```

    ## Instead
    ```python
    # cell 1
    model = Net(hidden=128)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    # cell 2
    train(model, optimizer, epochs=5)
    ```

    ## Thresholds
    None. The finding is a warning if the cell has been run even though nothing defines the name, or if the name is
    defined only further down or is deleted above. The finding is a note if no cell defines the name and the cell
    has not been run, because the name may be defined outside the notebook.

    ## Known problems
    Only names that are certain to be read are reported. The rule ignores names in a branch of an `if`, in a `try`
    with handlers, in a method, or in a function that is never called by name. After `from x import *`, `exec`,
    `globals()` or an unrecognised magic command (such as `%run`), nothing is reported.

    ## Sources
    J. F. Pimentel et al., "A Large-Scale Study About Quality and Reproducibility of Jupyter Notebooks" (MSR 2019):
    of 863,878 notebooks that were run again, 24% finished without an error, and 4% gave the same results.
    """

    severity = "warning"

    @check
    def from_notebook(self, notebook: NotebookFacts) -> Finding | None:
        """Name the first read that is proven to fail, and list the others."""
        if not notebook.missing:
            return None
        first = min(notebook.missing, key=lambda one: _severity(one) == "note")
        others = [one.name for one in notebook.missing if one is not first]
        more = f" The same applies to {listed((f'`{name}`' for name in others), most=NAMED)}." if others else ""
        at = first.called or first.read
        return self.found(
            f"{_read(first)}, {_why(first)} When the notebook is run from the top, {at} raises NameError.{more}",
            fix=_fix(first),
            evidence={
                "name": first.name,
                "cell": at.cell,
                "defined_in_cell": first.defined and first.defined.cell,
                "others": others,
            },
            where=Where(f"{notebook.file}, cell {first.read.cell}", first.read.line, first.function or "<module>"),
            severity=_severity(first),
        )


def _severity(missing: MissingName) -> Severity:
    return "warning" if missing.ran or missing.defined or missing.deleted else "note"


def _read(missing: MissingName) -> str:
    if missing.called is None:
        return f"{capitalized(str(missing.read))} reads `{missing.name}`"
    called = capitalized(str(missing.called))
    return f"{called} calls `{missing.function}`, which reads `{missing.name}`"


def _why(missing: MissingName) -> str:
    if missing.deleted is not None:
        return f"which was deleted in {missing.deleted}."
    if missing.defined is not None:
        at = missing.called or missing.read
        if missing.defined.cell == at.cell:
            return f"which is defined only later, on line {missing.defined.line} of the same cell."
        return f"which is defined only further down, in {missing.defined}."
    if missing.ran:
        return (
            "but no cell in the notebook defines it. This cell has been run, so the name must have come from a "
            "cell that has since been deleted or edited."
        )
    return "but no cell in the notebook defines it."


def _fix(missing: MissingName) -> tuple[str, ...]:
    if missing.deleted is not None:
        return (f"define `{missing.name}` again after deleting it", "delete the name only after its last use")
    if missing.defined is not None:
        return (f"move the definition of `{missing.name}` above its first use",)
    return (
        f"define `{missing.name}` in the notebook, above its first use",
        "restart the kernel and run all cells, to see what else is missing",
    )
