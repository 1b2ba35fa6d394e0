"""Gathers the facts about a notebook's file, as if it were run from its first cell to its last."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from diagnostics.facts.notebook import CalledValue, CellPlace, GlobalRead, MissingName, NotebookFacts, Reordered

from .events import Binding, CellNames, Deletion, FunctionNames, Use
from .file import CodeCell, code_cells
from .magics import PythonCell, as_python
from .names import names_of

# What IPython, and platforms that run notebooks, define in each of them.
PROVIDED = frozenset(dir(builtins)) | {"get_ipython", "display", "In", "Out", "exit", "quit", "open"}
PROVIDED |= {"__name__", "__doc__", "__builtins__", "__builtin__", "__file__", "__session__", "__vsc_ipynb_file__"}
PROVIDED |= {"spark", "sc", "sqlContext", "sqlcontext", "dbutils", "displayHTML", "table", "sql"}
_HISTORY = re.compile(r"_+\d*|_i+\d*|_[io]h|_dh|_exit_code|_oh")
DEEPEST = 6  # functions that call functions
MOST_READS = 200
UNCHANGED = ("import", "function", "class")  # running their cell again mostly changes nothing
MAX_REORDERED = 50

CALLABLE = ("import", "function", "class")
FIXED = ("literal", "constant")
_Placed = tuple[CellPlace, Binding]


@dataclass(frozen=True)
class ReadCell:
    """A code cell, and what it does to names."""

    cell: CodeCell
    python: PythonCell
    names: CellNames

    def place(self, line: int) -> CellPlace:
        """Return a line of the cell as a place."""
        return CellPlace(self.cell.number, self.cell.count, line)

    @property
    def hides_names(self) -> bool:
        """Whether the cell may define names that its source does not show."""
        return self.python.opaque or self.names.dynamic or self.names.star

    @property
    def bindings(self) -> Iterator[Binding]:
        """What the cell binds, at its top level."""
        return (event for event in self.names.events if isinstance(event, Binding))


@dataclass(frozen=True)
class _Bound:
    place: CellPlace
    binding: Binding | None  # None: it may be anything


@dataclass
class FromTop:
    """What happens to the names when the notebook is run from the top.

    Attributes:
        missing: names read before anything defines them, each once.
        called: plain values that are called, each name once.
    """

    cells: list[ReadCell]
    missing: list[MissingName] = field(default_factory=list)
    called: list[CalledValue] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._bound: dict[str, _Bound] = {}
        self._deleted: dict[str, CellPlace] = {}
        self._functions: dict[str, tuple[ReadCell, FunctionNames]] = {}
        # Names that some function binds: when it does is not known.
        self._moving = {name for one in self.cells for function in one.names.functions for name in function.binds}
        self._unknown = False  # whether any other name may be defined, too
        for one in self.cells:
            if not self._follow(one):
                break

    def _follow(self, one: ReadCell) -> bool:
        """Follow a cell; return whether those after it are run."""
        if one.cell.skipped:
            for binding in one.bindings:
                self._bound[binding.name] = _Bound(one.place(binding.line), None)
            return True
        if one.python.forgets:
            self._bound.clear()
        unseen = one.python.opaque or one.names.dynamic
        if one.hides_names:
            self._unknown = True
            self._bound = {name: _Bound(bound.place, None) for name, bound in self._bound.items()}
        for name in one.python.defines:
            self._bound[name] = _Bound(one.place(1), None)
        own = {function.name: function for function in one.names.functions if not function.method}
        for event in one.names.events:
            match event:
                case Use():
                    self._use(one, event)
                case Deletion(name=name):
                    self._bound.pop(name, None)
                    self._deleted[name] = one.place(event.line)
                case Binding(name=name):
                    known = one.python.keeps and not unseen and not one.cell.failed
                    self._bound[name] = _Bound(one.place(event.line), event if known else None)
                    self._functions.pop(name, None)
                    if event.kind == "function" and name in own:
                        self._functions[name] = one, own[name]
            if isinstance(event, Binding) and event.name in own:
                for name in own[event.name].binds:
                    self._bound.setdefault(name, _Bound(one.place(event.line), None))
        for function in one.names.functions:  # methods, too
            for name in function.binds:
                self._bound.setdefault(name, _Bound(one.place(function.line), None))
        return not one.names.stops or one.cell.failed

    def _use(self, one: ReadCell, use: Use) -> None:
        certain = use.certain and not one.cell.failed
        if not self._is_known(use.name):
            if certain:
                self._miss(one, use.line, MissingName(use.name, one.place(use.line)))
            return
        if use.called and certain:
            self._check_call(use.name, one.place(use.line), "")
            self._enter(one, use.line, use.name, ())

    def _enter(self, one: ReadCell, line: int, name: str, within: tuple[str, ...]) -> None:
        """Follow what a function reads when a cell calls it."""
        found = self._functions.get(name)
        if found is None or not found[1].runs or name in within or len(within) >= DEEPEST:
            return
        home, function = found
        for use in function.uses:
            if not use.certain:
                continue
            if not self._is_known(use.name):
                self._miss(one, line, MissingName(use.name, home.place(use.line), one.place(line), name))
            elif use.called:
                self._check_call(use.name, home.place(use.line), name)
                self._enter(one, line, use.name, (*within, name))

    def _is_known(self, name: str) -> bool:
        return name in self._bound or name in PROVIDED or _HISTORY.fullmatch(name) is not None

    def _miss(self, one: ReadCell, line: int, missing: MissingName) -> None:
        """Keep a name that is not defined at this line of a cell."""
        self._bound[missing.name] = _Bound(missing.read, None)  # named once
        if self._unknown:
            return
        later = (
            other.place(binding.line)
            for other in self.cells
            for binding in other.bindings
            if binding.name == missing.name and (other.cell.number, binding.line) > (one.cell.number, line)
        )
        self.missing.append(
            replace(
                missing,
                defined=next(later, None),
                deleted=self._deleted.get(missing.name),
                ran=one.cell.count is not None,
            )
        )

    def _check_call(self, name: str, called: CellPlace, function: str) -> None:
        bound = self._bound.get(name)
        if bound is None or bound.binding is None or name in self._moving:
            return
        binding = bound.binding
        if binding.kind == "literal" and binding.certain and all(c.name != name for c in self.called):
            was = "a built-in function" if name in dir(builtins) else self._was_before(name, bound.place)
            self.called.append(CalledValue(name, called, bound.place, binding.value, was, function))

    def _was_before(self, name: str, place: CellPlace) -> str:
        kinds = [
            binding.kind
            for one in self.cells[: place.cell]
            for binding in one.bindings
            if binding.name == name and (one.cell.number, binding.line) < (place.cell, place.line)
        ]
        articles = {"import": "an import", "function": "a function", "class": "a class"}
        return articles.get(kinds[-1], "") if kinds else ""


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
