"""See `CellsOutOfOrder`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.notebook import NotebookFacts, Reordered
from diagnostics.facts.where import Where
from diagnostics.text.join import capitalized, listed

NAMED = 5  # further names


class CellsOutOfOrder(Rule):
    """A notebook's results come from cells that were not run in order.

    ## What it does
    Compares the order of the cells in a notebook file with the execution counts of their last runs, such as
    `In[7]`. Names a cell if one of the variables that it uses was set by a different cell than it would be in a
    run from top to bottom, or was set again after the cell was run.

    ## Why it is bad
    The results may come from code that the notebook no longer shows. If the cell with the learning rate was edited
    and run again after training, the curve belongs to the old learning rate.

    ## Example
    ```python
    In [9]: lr = 1e-4               # was 1e-2 when In [4] was run
    In [4]: history = train(model, lr)
    ```

    ## Instead
    ```python
    In [1]: lr = 1e-4
    In [2]: history = train(model, lr)      # after Restart and Run All
    ```

    ## Thresholds
    None. The finding is always a note, because execution counts do not show whether a cell was edited between
    runs. Cells that only import, or only define functions and classes, may be run again at any time.

    ## Known problems
    Execution counts from different sessions cannot be distinguished. Changes inside an object, such as changes to
    a model's weights during training, do not rebind a name, so they go unnoticed.

    ## Sources
    J. F. Pimentel et al., "A Large-Scale Study About Quality and Reproducibility of Jupyter Notebooks" (MSR 2019).
    """

    severity = "note"

    @check
    def from_notebook(self, notebook: NotebookFacts) -> Finding | None:
        """Name the first variable that came from elsewhere.

        Raises:
            NotApplicable: no cell has an execution count.
        """
        if not notebook.run:
            raise NotApplicable("needs a notebook with execution counts")
        if not notebook.reordered:
            return None
        first, *others = notebook.reordered
        names = list(dict.fromkeys(one.name for one in others if one.name != first.name))
        more = f" The same applies to {listed((f'`{name}`' for name in names), most=NAMED)}." if names else ""
        return self.found(
            f"{_what(first)}{more}",
            fix=("restart the kernel and run all cells before you save or trust the results",),
            evidence={"name": first.name, "cell": first.read.cell, "reads": len(notebook.reordered)},
            where=Where(f"{notebook.file}, cell {first.read.cell}", first.read.line, "<module>"),
        )


def _what(one: Reordered) -> str:
    if one.then is None:
        return (
            f"{capitalized(str(one.from_top))}, which sets `{one.name}`, was last run after {one.read} had read "
            f"`{one.name}`. So the results of {one.read} come from an earlier run of cell {one.from_top.cell}, "
            "and cannot be reproduced if its code has changed since."
        )
    return (
        f"{capitalized(str(one.read))} used the `{one.name}` from {one.then}. When the notebook is run from the "
        f"top, cell {one.read.cell} uses the `{one.name}` from {one.from_top} instead."
    )
