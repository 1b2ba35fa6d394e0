"""Follows the names of a notebook from its first cell to its last, as if it were run from the top."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from diagnostics.facts.notebook import CalledValue, CellPlace, MissingName

from .events import Binding, CellNames, Deletion, FunctionNames, Use
from .file import CodeCell
from .magics import PythonCell

# What IPython, and platforms that run notebooks, define in each of them.
PROVIDED = frozenset(dir(builtins)) | {"get_ipython", "display", "In", "Out", "exit", "quit", "open"}
PROVIDED |= {"__name__", "__doc__", "__builtins__", "__builtin__", "__file__", "__session__", "__vsc_ipynb_file__"}
PROVIDED |= {"spark", "sc", "sqlContext", "sqlcontext", "dbutils", "displayHTML", "table", "sql"}
_HISTORY = re.compile(r"_+\d*|_i+\d*|_[io]h|_dh|_exit_code|_oh")
DEEPEST = 6  # functions that call functions


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
