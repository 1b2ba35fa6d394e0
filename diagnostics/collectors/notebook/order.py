"""Finds the names that cells read, when they were run, from other cells than they will from the top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnostics.facts.notebook import Reordered

from .events import Binding, Use
from .from_top import ReadCell

UNCHANGED = ("import", "function", "class")  # running their cell again mostly changes nothing
MAX_CELLS = 50


def reordered(cells: Sequence[ReadCell]) -> list[Reordered]:
    """Return them, at most `MAX_CELLS`; none if two cells have one number, as after a restart of the kernel."""
    counts = [one.cell.count for one in cells if one.cell.count is not None]
    if len(set(counts)) != len(counts):
        return []
    return [found for one in cells if one.cell.count is not None for found in _in(one, cells)][:MAX_CELLS]


def _in(one: ReadCell, cells: Sequence[ReadCell]) -> Iterator[Reordered]:
    for use in _from_others(one):
        binders = [(other, bound) for other in cells if (bound := _last(other, use.name)) is not None]
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


def _from_others(one: ReadCell) -> Iterator[Use]:
    """Yield the first read of each name that the cell has not bound itself before."""
    known: set[str] = set()
    for event in one.names.events:
        if isinstance(event, Use) and event.name not in known:
            yield event
        known.add(event.name)


def _last(one: ReadCell, name: str) -> Binding | None:
    return next((binding for binding in reversed(list(one.bindings)) if binding.name == name), None)
