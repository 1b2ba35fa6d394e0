"""Deep copies of models whose functions read the copy."""

from __future__ import annotations

import copy
from functools import partial
from itertools import chain
from types import CellType, FunctionType, MethodType
from typing import Any, TypeVar

T = TypeVar("T")
FUNCTIONS = (FunctionType, MethodType, partial, tuple)


def whole_copy(value: T) -> T:
    """Copy deeply, and let functions in the copy read what was copied instead of the originals.

    `copy.deepcopy` shares functions. A forward that a library has replaced by a closure over the original one, as
    TRL does, would so compute with the original's weights, in the original's mode.
    """
    memo: dict[int, Any] = {}
    made = copy.deepcopy(value, memo)
    copies = _Copies(memo)
    rebinding = _Rebinding(copies)
    for copied in copies.all:
        if isinstance(copied, dict | list):
            rebinding.within(copied)
        if (attributes := _attributes(copied)) is not None:
            rebinding.within(attributes)
    bound: T = rebinding.of(made)
    return bound


class _Copies:
    """Finds the copy of an original, or of its weak twin. Both copies share their attributes, as the originals do.

    Args:
        memo: of `copy.deepcopy`: the copies by the `id` of their originals.

    Attributes:
        all: the copies.
    """

    def __init__(self, memo: dict[int, Any]) -> None:
        self._memo, self.all = memo, []
        self._by_attributes: dict[int, tuple[Any, Any]] = {}  # with the attributes, so that their id stays theirs
        for original in memo.get(id(memo), []):  # where deepcopy keeps what it has copied
            copied = memo[id(original)]
            self.all.append(copied)
            attributes, own = _attributes(original), _attributes(copied)
            if attributes is None or own is None:
                continue
            _, first = self._by_attributes.setdefault(id(attributes), (attributes, copied))
            if first is not copied and type(first) is type(copied):
                object.__setattr__(copied, "__dict__", first.__dict__)

    def of(self, original: Any) -> Any:
        """Return the copy; the object itself if it was not copied."""
        _, of_twin = self._by_attributes.get(id(_attributes(original)), (None, original))
        return self._memo.get(id(original), of_twin)


class _Rebinding:
    """Makes functions that read copies.

    Args:
        copies: what they read.
    """

    def __init__(self, copies: _Copies) -> None:
        self._copies = copies
        self._made: dict[int, tuple[Any, Any]] = {}  # with the function itself, so that its id stays its own

    def within(self, container: dict[Any, Any] | list[Any]) -> None:
        """Replace the functions of a container."""
        for key, value in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if type(value) in FUNCTIONS and (bound := self.of(value)) is not value:
                container[key] = bound

    def of(self, value: Any) -> Any:
        """Return the copy of an original, a function that reads copies, or the value itself."""
        if type(value) not in FUNCTIONS:
            return self._copies.of(value)
        if not self._reads_an_original(value, set()):
            return value
        if id(value) not in self._made:
            self._made[id(value)] = value, self._rebound(value)
        return self._made[id(value)][1]

    def _reads_an_original(self, value: Any, seen: set[int]) -> bool:
        if type(value) not in FUNCTIONS:
            return self._copies.of(value) is not value
        if id(value) in seen:
            return False
        seen.add(id(value))
        return any(self._reads_an_original(part, seen) for part in _parts(value))

    def _rebound(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        if isinstance(value, MethodType):
            return MethodType(self.of(value.__func__), self.of(value.__self__))
        if isinstance(value, partial):
            options = {name: self.of(option) for name, option in value.keywords.items()}
            return partial(self.of(value.func), *map(self.of, value.args), **options)
        cells = tuple(CellType() for _ in value.__closure__ or ())
        made = FunctionType(value.__code__, value.__globals__, value.__name__, None, cells)
        self._made[id(value)] = value, made  # a recursive function is in a cell of its own
        for cell, own in zip(value.__closure__ or (), cells, strict=True):
            for content in _contents(cell):
                own.cell_contents = self.of(content)
        made.__defaults__ = value.__defaults__ and tuple(map(self.of, value.__defaults__))
        made.__kwdefaults__ = value.__kwdefaults__ and {n: self.of(v) for n, v in value.__kwdefaults__.items()}
        made.__dict__.update({name: self.of(attribute) for name, attribute in value.__dict__.items()})
        made.__qualname__, made.__doc__, made.__module__ = value.__qualname__, value.__doc__, value.__module__
        made.__annotations__ = value.__annotations__
        return made


def _parts(function: Any) -> list[Any]:
    """Return what a function, a method, a partial or a tuple consists of."""
    if isinstance(function, tuple):
        return list(function)
    if isinstance(function, MethodType):
        return [function.__func__, function.__self__]
    if isinstance(function, partial):
        return [function.func, *function.args, *function.keywords.values()]
    found = [content for cell in function.__closure__ or () for content in _contents(cell)]
    defaults = chain(function.__defaults__ or (), (function.__kwdefaults__ or {}).values())
    return [*found, *defaults, *vars(function).values()]


def _contents(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # not assigned yet
        return ()


def _attributes(value: Any) -> dict[str, Any] | None:
    try:
        found = vars(value)
    except Exception:  # an object without them, or a proxy of none
        return None
    return found if isinstance(found, dict) else None
