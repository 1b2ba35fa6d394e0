"""Gathers the facts about a notebook's file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from diagnostics.facts.notebook import CellPlace, GlobalRead, NotebookFacts, Reordered

from .events import Binding, CellNames, FunctionNames, Use
from .file import CodeCell, code_cells
from .from_top import FromTop, ReadCell
from .magics import PythonCell, as_python
from .names import names_of

MOST_READS = 200
UNCHANGED = ("import", "function", "class")  # running their cell again mostly changes nothing
MAX_REORDERED = 50

CALLABLE = ("import", "function", "class")
FIXED = ("literal", "constant")
_Placed = tuple[CellPlace, Binding]


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


def global_reads(cells: Sequence[ReadCell]) -> Iterator[GlobalRead]:
    """Yield each function and variable once: no constants in capitals, imports, functions and classes."""
    bound: dict[str, list[_Placed]] = {}
    for one in cells:
        for binding in one.bindings:
            if one.python.keeps:
                bound.setdefault(binding.name, []).append((one.place(binding.line), binding))
    calls = _calls(cells)
    # Then a name that only a loop is seen to set may be set elsewhere, too.
    unseen = any(one.hides_names for one in cells)
    for one in cells:
        for function in one.names.functions:
            if function.name == "<lambda>":
                continue
            for name in dict.fromkeys(use.name for use in function.uses):
                if name in bound and _is_variable(name, [binding for _, binding in bound[name]]):
                    read = _global_read(one, function, name, bound[name], calls.get(function.name, ()))
                    yield replace(read, leftover=read.leftover and not unseen)


def _is_variable(name: str, bindings: Sequence[Binding]) -> bool:
    kinds = [binding.kind for binding in bindings]
    if (name.isupper() and len(name) > 1) or all(kind in CALLABLE for kind in kinds):
        return False
    return len(bindings) > 1 or kinds[0] not in FIXED


def _global_read(
    one: ReadCell, function: FunctionNames, name: str, bound: Sequence[_Placed], calls: Sequence[CellPlace]
) -> GlobalRead:
    defined = one.place(function.line)
    held = [_at(place, bound) for place in (defined, *calls)]
    kinds = {_group(binding) for _, binding in held}
    # A method has no calls that are seen by its name: where it runs is not known.
    differs = not function.method and len({_key(place) for place, _ in held}) > 1
    loops = all(binding.kind == "loop variable" for _, binding in bound)
    outside = [
        call
        for call in calls
        if not any(p.cell == call.cell and p.line <= call.line <= binding.until for p, binding in bound)
    ]
    return GlobalRead(
        function.name,
        defined,
        name,
        tuple(place for place, _ in bound),
        tuple(binding.kind for _, binding in bound),
        tuple(calls),
        differs,
        differs and len(kinds) > 1,
        loops and bool(outside),
    )


def _calls(cells: Sequence[ReadCell]) -> dict[str, list[CellPlace]]:
    found: dict[str, list[CellPlace]] = {}
    for one in cells:
        for event in one.names.events:
            if isinstance(event, Use) and event.called:
                found.setdefault(event.name, []).append(one.place(event.line))
    return found


def _at(place: CellPlace, bound: Sequence[_Placed]) -> _Placed:
    """Return what binds a name at a place, from the top: the last before it, or else the first of all."""
    before = [one for one in bound if _key(one[0]) <= _key(place)]
    return before[-1] if before else bound[0]


def _key(place: CellPlace) -> tuple[int, int]:
    return place.cell, place.line


def _group(binding: Binding) -> str:
    return "callable" if binding.kind in CALLABLE else "loop" if binding.kind == "loop variable" else "value"
