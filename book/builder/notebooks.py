"""Notebook sources become notebooks, are run, and are judged.

Papermill runs on past a cell tagged `raises-exception`, as it should, but at the end reports any error output
as a failure, meant or not; and a script that fails under `%run` leaves an error output in a cell that counts
as a success. So what papermill thinks of a notebook is not asked: every cell is looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import papermill
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError
from papermill.execute import remove_error_markers

MEANT_TO_RAISE = "raises-exception"
# A cell that trains takes one minute. A busy machine may take thirty times as long, for the cell itself, for the
# kernel's start and for the last of a cell's output: it makes the build slow, and not fail.
PATIENCE_S = 30 * 60
SHOWN_LINES = 6  # of a cell's source, in a message


class SourceError(ValueError):
    """A notebook source that cannot be used; `str()` says which, and why."""


def read_source(source: Path) -> NotebookNode:
    """Turn a MyST notebook source into a notebook that has not run.

    Raises:
        SourceError: it holds no code cell, or does not say what language its kernel speaks.
    """
    notebook = jupytext.read(source)
    if not _code_cells(notebook):
        raise SourceError(f"{source.name} holds no code cell: is its header a jupytext header of format myst?")
    if notebook.metadata.get("kernelspec", {}).get("language") != "python":
        raise SourceError(f"{source.name} needs `language: python` under `kernelspec:` in its header.")
    return notebook


def run(
    notebook: NotebookNode,
    target: Path,
    parameters: dict[str, Any],
    folder: Path,
    after_cell: Callable[[], None] = lambda: None,
) -> NotebookNode:
    """Run a notebook from top to bottom in a kernel of its own, and return it with its outputs.

    Args:
        notebook: as `read_source` gives it.
        target: file that holds the notebook as far as it got, whatever happens.
        parameters: values for the cell tagged `parameters`.
        folder: the kernel's working directory.
        after_cell: called after each code cell.
    """
    source = target.with_suffix(".source.ipynb")
    nbformat.write(notebook, source)
    try:
        papermill.execute_notebook(
            source,
            target,
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            start_timeout=PATIENCE_S,
            execution_timeout=PATIENCE_S,
            iopub_timeout=PATIENCE_S,  # nbclient waits 4 s; papermill fails then. A dead kernel is noticed before
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--log-level=40"],  # errors only: the kernel warns about its own sockets
            on_cell_executed=lambda **_: after_cell(),
        )
    except PapermillExecutionError:
        pass  # whether it was meant is for `problems` to say
    finally:
        source.unlink()
    executed = remove_error_markers(nbformat.read(target, as_version=4))
    nbformat.write(executed, target)
    return executed


def problems(notebook: NotebookNode) -> list[str]:
    """Say for each cell that did not do what it should what it is and what happened; empty if all is well."""
    found = []
    cells = _code_cells(notebook)
    for number, cell in enumerate(cells, start=1):
        errors = [output for output in cell.outputs if output.output_type == "error"]
        meant = MEANT_TO_RAISE in cell.metadata.get("tags", [])
        if cell.execution_count is None:
            what = "was not executed"
        elif errors and not meant:
            what = f"raised, and was not meant to: {errors[0].ename}: {errors[0].evalue}"
        elif meant and not errors:
            what = f"should have raised (it is tagged {MEANT_TO_RAISE}), and did not"
        else:
            continue
        found.append(f"code cell {number} of {len(cells)} {what}\n{_excerpt(cell.source)}")
    # Once a cell has failed those after it are not executed: the first to fail is what there is to say.
    raised = [problem for problem in found if "was not executed" not in problem.splitlines()[0]]
    return raised or found[:1]


def _code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code"
        and cell.source.strip()
        and "injected-parameters" not in cell.metadata.get("tags", [])
    ]


def _excerpt(source: str) -> str:
    lines = source.strip().splitlines()
    more = [f"… {len(lines) - SHOWN_LINES} more lines"] if len(lines) > SHOWN_LINES else []
    return "\n".join(f"    | {line}" for line in lines[:SHOWN_LINES] + more)
