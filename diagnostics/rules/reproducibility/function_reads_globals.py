"""See `FunctionReadsGlobals`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.notebook import GlobalRead, NotebookFacts
from diagnostics.facts.where import Where
from diagnostics.text.join import count_of, listed

NAMED = 5  # functions, and variables of each


class FunctionReadsGlobals(Rule):
    """A function in a notebook reads variables that are not passed to it.

    ## What it does
    Lists the functions in a notebook file that read the notebook's variables. Constants in capitals, values that
    are set only once, imports, functions and classes are ignored. The finding points out variables that are set in
    several places, or only by a loop.

    ## Why it is bad
    A function that reads `model` or `batch` from the notebook uses whatever these names refer to when it is
    called: the model from an earlier experiment, or the last batch of a finished loop. A typo in the function,
    such as `x` for `xb`, raises no error if the notebook has a variable `x`.

    ## Example
    ```python
    def accuracy(loader):
        hits = 0
        for xb, yb in loader:
            # x: the last batch of a training loop above
            hits += (model(x).argmax(1) == yb).sum()
        return hits / len(loader.dataset)
    ```

    ## Instead
    ```python
    def accuracy(model, loader):
        hits = 0
        for xb, yb in loader:
            hits += (model(xb).argmax(1) == yb).sum()
        return hits / len(loader.dataset)
    ```

    ## Thresholds
    None. The finding is always a note, because the function may read the variables on purpose.

    ## Known problems
    The rule does not see variables created by a magic command or by `from x import *`.

    ## Sources
    J. Grus, "I don't like notebooks" (JupyterCon 2018); S. Chattopadhyay et al., "What's Wrong with Computational
    Notebooks?" (CHI 2020).
    """

    severity = "note"

    @check
    def from_notebook(self, notebook: NotebookFacts) -> Finding | None:
        """Report the most doubtful variable, or list all."""
        reads = [read for read in notebook.reads if not read.changes_kind]  # redefined-name reports those
        if not reads:
            return None
        functions: dict[str, list[str]] = {}
        for read in reads:
            functions.setdefault(read.function, []).append(read.name)
        first = min(reads, key=lambda read: (not read.leftover, not read.differs))
        listing = [
            f"`{name}` reads {listed((f'`{one}`' for one in names), most=NAMED)}"
            for name, names in list(functions.items())[:NAMED]
        ]
        if (more := len(functions) - len(listing)) > 0:
            listing.append(f"and {more} more")
        passed = ", ".join(functions[first.function])
        they_read = "reads global variables" if len(functions) == 1 else "read global variables"
        return self.found(
            f"{_doubt(first)}{count_of(len(functions), 'function')} in the notebook {they_read} instead of "
            f"arguments: {'; '.join(listing)}.",
            fix=(f"pass the variables as arguments: def {first.function}(..., {passed})",),
            evidence={"functions": functions},
            where=Where(f"{notebook.file}, cell {first.defined.cell}", first.defined.line, first.function),
        )


def _doubt(read: GlobalRead) -> str:
    places = listed(dict.fromkeys(map(str, read.bindings)), most=NAMED)
    if read.leftover:
        return (
            f"`{read.function}` reads the global `{read.name}`, which is set only by a loop in {places}. The "
            "function is called outside the loop, so it gets the value from the last iteration. "
        )
    if read.differs:
        return (
            f"`{read.function}` reads the global `{read.name}`, which is set in {places}, so its value depends "
            "on which of these cells was run last. "
        )
    return ""
