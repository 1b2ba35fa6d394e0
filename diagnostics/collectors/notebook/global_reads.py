"""Finds the variables of a notebook that its functions read instead of being given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from diagnostics.facts.notebook import CellPlace, GlobalRead

from .events import Binding, FunctionNames, Use
from .from_top import ReadCell

CALLABLE = ("import", "function", "class")
FIXED = ("literal", "constant")
_Placed = tuple[CellPlace, Binding]


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
                    read = _read(one, function, name, bound[name], calls.get(function.name, ()))
                    yield replace(read, leftover=read.leftover and not unseen)


def _is_variable(name: str, bindings: Sequence[Binding]) -> bool:
    kinds = [binding.kind for binding in bindings]
    if (name.isupper() and len(name) > 1) or all(kind in CALLABLE for kind in kinds):
        return False
    return len(bindings) > 1 or kinds[0] not in FIXED


def _read(
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
