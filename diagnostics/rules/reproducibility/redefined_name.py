"""See `RedefinedName`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.notebook import CalledValue, GlobalRead, NotebookFacts, ValueKind
from diagnostics.facts.where import Where
from diagnostics.text.join import listed

VERBS: dict[ValueKind, tuple[str, str]] = {
    "import": ("import", ""),
    "function": ("define", " as a function"),
    "class": ("define", " as a class"),
    "loop variable": ("use", " as a loop variable"),
    "literal": ("assign", ""),
    "constant": ("assign", ""),
    "other": ("assign", ""),
}
"""By kind of value: what a cell does to a name that it gives such a value, around the name."""


class RedefinedName(Rule):
    """A notebook redefines a name and later uses it with its original meaning.

    ## What it does
    Follows the names in a notebook file from top to bottom, without running the notebook. Reports a number,
    string, list or similar value that is called as a function. Also reports a function that reads a name whose
    meaning has changed: the name refers to a value when the function is defined, but to a loop variable or a
    function when it is called, or vice versa.

    ## Why it is bad
    All cells share one namespace. `sum = 0.0` in one cell hides Python's `sum` in all others, and
    `for model in models` leaves the last model behind for every function that reads `model`. Run from top to
    bottom, the notebook fails or computes something else.

    ## Example
    ```python
    # cell 1
    sum = 0.0
    for batch in loader:
        sum += evaluate(batch)
    # cell 2
    total = sum(lengths)          # TypeError: 'float' object is not callable
    ```

    ## Instead
    ```python
    # cell 1
    loss_sum = 0.0
    for batch in loader:
        loss_sum += evaluate(batch)
    # cell 2
    total = sum(lengths)
    ```

    ## Thresholds
    None. The finding is a warning if the call certainly fails when the notebook is run from top to bottom. The
    finding is a note if the name is only rebound to a value of another kind.

    ## Known problems
    Only values that are visible in the source are recognised; the result of `correct / total`, for example, is
    not. A name that a function declares `global` is not checked.

    ## Sources
    Python's documentation, "Built-in Functions" and "Naming and binding".
    """

    severity = "warning"

    @check
    def from_notebook(self, notebook: NotebookFacts) -> Finding | None:
        """Look for a value that is called, then for a variable whose kind changes."""
        if notebook.called:
            return self._called(notebook, notebook.called[0])
        changed = [read for read in notebook.reads if read.changes_kind]
        return self._changed(notebook, changed[0]) if changed else None

    def _called(self, notebook: NotebookFacts, found: CalledValue) -> Finding:
        was = f" Before {found.bound}, `{found.name}` was {found.was}." if found.was else ""
        by = f"`{found.function}`, in {found.called}," if found.function else found.called
        others = [one.name for one in notebook.called[1:]]
        more = f" The same applies to {listed(f'`{name}`' for name in others)}." if others else ""
        return self.found(
            f"`{found.name}` has been {found.value} since {found.bound}, line {found.bound.line}, but {by} calls "
            f"it as a function.{was} When the notebook is run from the top, this call raises TypeError.{more}",
            fix=(f"rename the variable `{found.name}`, which holds {found.value}",),
            evidence={"name": found.name, "bound_in_cell": found.bound.cell, "called_in_cell": found.called.cell},
            where=Where(f"{notebook.file}, cell {found.bound.cell}", found.bound.line, "<module>"),
        )

    def _changed(self, notebook: NotebookFacts, read: GlobalRead) -> Finding:
        places: dict[tuple[str, str], list[str]] = {}
        for kind, place in zip(read.kinds, map(str, read.bindings), strict=True):
            cells = places.setdefault(VERBS[kind], [])
            if place not in cells:
                cells.append(place)
        set_by = [
            f"{listed(cells)} {verb}{'s' if len(cells) == 1 else ''}{what}"
            for (verb, what), cells in places.items()
        ]
        return self.found(
            f"The function `{read.function}` in {read.defined} reads the global `{read.name}`, which "
            f"{listed(set_by)}. The value that `{read.function}` sees depends on which of these cells ran last.",
            fix=(
                f"pass `{read.name}` as an argument: def {read.function}(..., {read.name})",
                f"use a different name for each meaning of `{read.name}`",
            ),
            evidence={"function": read.function, "name": read.name, "bindings": len(read.bindings)},
            where=Where(f"{notebook.file}, cell {read.defined.cell}", read.defined.line, read.function),
            severity="note",
        )
