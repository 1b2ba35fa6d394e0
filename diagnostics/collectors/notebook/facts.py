"""Gathers the facts about a notebook's file."""

from __future__ import annotations

import ast
from pathlib import Path

from diagnostics.facts.notebook import NotebookFacts

from .events import CellNames
from .file import CodeCell, code_cells
from .from_top import FromTop, ReadCell
from .global_reads import global_reads
from .magics import PythonCell, as_python
from .names import names_of
from .order import reordered

MOST_READS = 200


def notebook_facts(path: Path) -> NotebookFacts:
    """Read a notebook.

    Raises:
        InvalidInput: it cannot be read, or is no notebook of Python.
    """
    cells = [_read(cell) for cell in code_cells(path)]
    top = FromTop(cells)
    return NotebookFacts(
        file=path.name,
        cells=len(cells),
        run=sum(one.cell.count is not None for one in cells),
        unread=tuple((one.cell.number, one.python.problem) for one in cells if one.python.problem),
        missing=tuple(top.missing),
        called=tuple(top.called),
        reads=tuple(global_reads(cells))[:MOST_READS],
        reordered=tuple(reordered(cells)),
        last_count=max((one.cell.count or 0 for one in cells), default=0),
    )


def _read(cell: CodeCell) -> ReadCell:
    python = as_python(cell.source)
    try:
        return ReadCell(cell, python, names_of(python.tree))
    except RecursionError:  # an expression of thousands of terms
        deep = PythonCell(ast.Module([], []), opaque=True, problem="nested too deeply to be read")
        return ReadCell(cell, deep, CellNames())
