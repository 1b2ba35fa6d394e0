"""Whole notebooks, as other people write them: healthy ones without a warning, broken ones named.

What a warning claims is tried: the cells are run from the top, and end as it says.
"""

import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

import diagnostics
from diagnostics.collectors.notebook.facts import notebook_facts
from tests.support.notebooks import in_percent_format, numbered, write

ROOT = Path(__file__).parents[4]

FOLDERS = [ROOT / "book" / name for name in ("chapters", "exhibits", "mysteries")]
OF_THE_BOOK = [path for folder in FOLDERS for path in sorted(folder.glob("*.md"))]
HEALTHY = sorted((ROOT / "tests" / "notebooks" / "healthy").glob("*.txt"))

BROKEN = {
    "the cell with the optimizer was deleted": (
        [
            (1, "class Model:\n    def parameters(self): return [1.0]\nmodel = Model()"),
            (4, "def train(model, optimizer, epochs):\n    return epochs"),
            (6, "history = train(model, optimizer, epochs=3)"),
        ],
        "name-before-definition",
        "NameError: name 'optimizer' is not defined",
        "Cell 3 (In[6]) reads `optimizer`, but no cell in the notebook defines it. This cell has been run, so the "
        "name must have come from a cell that has since been deleted or edited. When the notebook is run from the "
        "top, cell 3 (In[6]) raises NameError.",
    ),
    "the helper stands below its use": (
        [(5, "rows = [clean(r) for r in ['a ', ' b']]"), (2, "def clean(r):\n    return r.strip()"), (6, "rows")],
        "name-before-definition",
        "NameError: name 'clean' is not defined",
        "Cell 1 (In[5]) reads `clean`, which is defined only further down, in cell 2 (In[2]). When the notebook "
        "is run from the top, cell 1 (In[5]) raises NameError.",
    ),
    "a function reads a loader that comes later": (
        [
            "def evaluate(model):\n    hits = 0\n    for x, y in val_loader:\n        hits += model(x) == y\n"
            "    return hits",
            "def report(model):\n    print(evaluate(model))",
            "report(abs)",
            "val_loader = [(-1, 1)]\nreport(abs)",
        ],
        "name-before-definition",
        "NameError: name 'val_loader' is not defined",
        "Cell 3 calls `evaluate`, which reads `val_loader`, which is defined only further down, in cell 4. When "
        "the notebook is run from the top, cell 3 raises NameError.",
    ),
    "memory was freed too early": (
        numbered("model = [1.0]\nbig = [0] * 10", "del big, model", "print(model)"),
        "name-before-definition",
        "NameError: name 'model' is not defined",
        "Cell 3 (In[3]) reads `model`, which was deleted in cell 2 (In[2]). When the notebook is run from the "
        "top, cell 3 (In[3]) raises NameError.",
    ),
    "sum was a running loss": (
        [
            (3, "sum = 0.0\nfor loss in [0.5, 0.25]:\n    sum += loss\nprint(f'mean loss {sum / 2}')"),
            (1, "lengths = [3, 4]"),
            (2, "def mean(values):\n    return sum(values) / len(values)"),
            (9, "mean(lengths)"),
        ],
        "redefined-name",
        "TypeError: 'float' object is not callable",
        "`sum` has been a number since cell 1 (In[3]), line 1, but `mean`, in cell 3 (In[2]), calls it as a "
        "function. Before cell 1 (In[3]), `sum` was a built-in function. When the notebook is run from the top, "
        "this call raises TypeError.",
    ),
    "the metric became its value": (
        [
            (1, "def accuracy(hits, rows):\n    return hits / rows"),
            (2, "accuracy = f'{accuracy(3, 4):.0%}'\naccuracy"),
            (8, "accuracy(1, 2)"),
        ],
        "redefined-name",
        "TypeError: 'str' object is not callable",
        "`accuracy` has been a string since cell 2 (In[2]), line 1, but cell 3 (In[8]) calls it as a function. "
        "Before cell 2 (In[2]), `accuracy` was a function. When the notebook is run from the top, this call "
        "raises TypeError.",
    ),
}

NOTED = {
    "x for xb": (
        numbered(
            "model, loader = abs, [(1, 1), (2, 2)]",
            "for x, y in loader:\n    model(x)",
            "def hits(loader):\n    n = 0\n    for xb, yb in loader:\n        n += model(x) == yb\n    return n",
            "hits(loader)",
        ),
        "function-reads-globals",
        "`hits` reads the global `x`, which is set only by a loop in cell 2 (In[2]). The function is called "
        "outside the loop, so it gets the value from the last iteration. 1 function in the notebook reads global "
        "variables instead of arguments: `hits` reads `model` and `x`.",
    ),
    "the last model of a loop": (
        numbered(
            "model = max([abs], key=id)",
            "def score():\n    return model(1)",
            "for model in (abs, round):\n    score()",
            "score()",
        ),
        "redefined-name",
        "The function `score` in cell 2 (In[2]) reads the global `model`, which cell 1 (In[1]) assigns and cell 3 "
        "(In[3]) uses as a loop variable. The value that `score` sees depends on which of these cells ran last.",
    ),
    "the rate was changed after the training": (
        [(9, "lr = 1e-4"), (4, "history = [lr * n for n in range(3)]"), (5, "history")],
        "cells-out-of-order",
        "Cell 1 (In[9]), which sets `lr`, was last run after cell 2 (In[4]) had read `lr`. So the results of "
        "cell 2 (In[4]) come from an earlier run of cell 1, and cannot be reproduced if its code has changed "
        "since.",
    ),
    "the second experiment was shown above": (
        [(1, "lr = 1e-2"), (5, "losses = [1 - lr * n for n in range(3)]"), (4, "lr = 1e-4"), (6, "losses")],
        "cells-out-of-order",
        "Cell 2 (In[5]) used the `lr` from cell 3 (In[4]). When the notebook is run from the top, cell 2 uses the "
        "`lr` from cell 1 (In[1]) instead.",
    ),
    "not run, and perhaps given from outside": (
        ["import os", "print(given_by_the_platform)"],
        "name-before-definition",
        "Cell 2 reads `given_by_the_platform`, but no cell in the notebook defines it. When the notebook is run "
        "from the top, cell 2 raises NameError.",
    ),
}


def from_the_top(cells):
    """Run cells until one fails, and return its error."""
    shell = InteractiveShell()
    try:
        for cell in cells:
            source = cell if isinstance(cell, str) else cell[1]
            error = shell.run_cell(source, silent=True).error_in_exec
            if error is not None:
                return f"{type(error).__name__}: {error}"
    finally:
        shell.history_manager.end_session() if shell.history_manager else None
    return ""


@pytest.mark.parametrize("source", HEALTHY, ids=lambda path: path.stem)
def test_a_healthy_notebook_gets_no_warning(tmp_path, source):
    cells = in_percent_format(source.read_text())
    assert len(cells) > 3
    report = diagnostics.check_notebook(write(tmp_path / "n.ipynb", *cells))
    assert [str(finding) for finding in report.findings if finding.severity != "note"] == []
    assert report.ok
    assert not report.faults
    assert report.stages[0].detail == f"of {len(cells)} cells"  # all were read


@pytest.mark.parametrize(("cells", "rule", "error", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_notebook_fails_as_it_is_told(tmp_path, capsys, cells, rule, error, message):
    report = diagnostics.check_notebook(write(tmp_path / "n.ipynb", *cells))
    warnings = [finding for finding in report.findings if finding.severity == "warning"]
    assert [(finding.rule, finding.message) for finding in warnings] == [(rule, message)]
    assert not report.ok
    assert from_the_top(cells) == error


@pytest.mark.parametrize(("cells", "rule", "message"), NOTED.values(), ids=NOTED)
def test_what_is_no_proof_is_a_note(tmp_path, cells, rule, message):
    report = diagnostics.check_notebook(write(tmp_path / "n.ipynb", *cells))
    assert (rule, "note", message) in [(f.rule, f.severity, f.message) for f in report.findings]
    assert report.ok


def test_a_cell_that_is_no_python_is_named_and_what_comes_after_it_is_not_judged(tmp_path):
    cells = numbered("x = 1", "def f(:", "print(perhaps_from_there)")
    report = diagnostics.check_notebook(write(tmp_path / "n.ipynb", *cells))
    assert report.stages[0].detail == (
        "of 2 cells; not Python: cell 2, line 1: invalid syntax; names after it are not judged"
    )
    assert report.findings == ()


def test_says_how_many_runs_the_notebook_does_not_show(tmp_path):
    cells = [(3, "x = 1"), (9, "x")]
    report = diagnostics.check_notebook(write(tmp_path / "n.ipynb", *cells))
    assert (
        report.stages[1].detail
        == "2 of 2 cells run, up to In[9]; 7 other runs: of cells run again, deleted or changed"
    )
    assert report.findings == ()


def test_the_numbers_of_several_sessions_are_not_compared(tmp_path):
    cells = [(1, "lr = 1"), (5, "losses = [lr]"), (4, "lr = 2"), (5, "losses")]
    assert notebook_facts(write(tmp_path / "n.ipynb", *cells)).reordered == ()


@pytest.mark.parametrize("source", OF_THE_BOOK, ids=lambda path: path.stem)
def test_the_notebooks_of_the_book_get_no_warning(tmp_path, source):
    path = tmp_path / f"{source.stem}.ipynb"
    nbformat.write(jupytext.read(source), path)
    report = diagnostics.check_notebook(path)
    assert [f"{f.rule}: {f.message}" for f in report.findings if f.severity != "note"] == []
    assert re.match(r"of \d+ cells$", report.stages[0].detail)


def test_no_framework_is_imported_for_it(tmp_path):
    path = write(tmp_path / "n.ipynb", "import torch")
    program = f"import sys, diagnostics; diagnostics.check_notebook({str(path)!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
