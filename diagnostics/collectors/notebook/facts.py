"""Gathers the facts about a notebook's file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from diagnostics.collectors.notebook.events import Binding, Use
from diagnostics.facts.notebook import NotebookFacts, Reordered

from .events import CellNames
from .file import CodeCell, code_cells
from .from_top import FromTop, ReadCell
from .global_reads import global_reads
from .magics import PythonCell, as_python
from .names import names_of

MOST_READS = 200
UNCHANGED = ("import", "function", "class")  # running their cell again mostly changes nothing
MAX_REORDERED = 50


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
        reordered=tuple(_reordered(cells)),
        last_count=max((one.cell.count or 0 for one in cells), default=0),
    )


def _read(cell: CodeCell) -> ReadCell:
    python = as_python(cell.source)
    try:
        return ReadCell(cell, python, names_of(python.tree))
    except RecursionError:  # an expression of thousands of terms
        deep = PythonCell(ast.Module([], []), opaque=True, problem="nested too deeply to be read")
        return ReadCell(cell, deep, CellNames())


def _reordered(cells: Sequence[ReadCell]) -> list[Reordered]:
    """Return the names that cells read, when they were run, from other cells than they will from the top.

    None if two cells have one number, as after a restart of the kernel.
    """
    run = [one for one in cells if one.cell.count is not None]
    if len({one.cell.count for one in run}) != len(run):
        return []
    return [found for one in run for found in _reordered_in(one, cells)][:MAX_REORDERED]


def _reordered_in(one: ReadCell, cells: Sequence[ReadCell]) -> Iterator[Reordered]:
    for use in _outer_reads(one):
        binders = [(other, bound) for other in cells if (bound := _last_binding(other, use.name)) is not None]
        above = [pair for pair in binders if pair[0].cell.number < one.cell.number]
        earlier = [
            pair
            for pair in binders
            if pair[0] is not one and pair[0].cell.count is not None and pair[0].cell.count < (one.cell.count or 0)
        ]
        if not above or above[-1][1].kind in UNCHANGED:
            continue
        source, binding = above[-1]
        then = max(earlier, key=lambda pair: pair[0].cell.count or 0, default=None)
        if then is None:
            if any(pair[0] is one for pair in binders):  # its own, of the run before
                continue
            yield Reordered(use.name, one.place(use.line), None, source.place(binding.line))
        elif then[0] is not source and not (binding.text and binding.text == then[1].text):
            yield Reordered(use.name, one.place(use.line), then[0].place(then[1].line), source.place(binding.line))


def _outer_reads(one: ReadCell) -> Iterator[Use]:
    """Yield the first read of each name that the cell has not bound itself before."""
    known: set[str] = set()
    for event in one.names.events:
        if isinstance(event, Use) and event.name not in known:
            yield event
        known.add(event.name)


def _last_binding(one: ReadCell, name: str) -> Binding | None:
    return next((binding for binding in reversed(list(one.bindings)) if binding.name == name), None)
