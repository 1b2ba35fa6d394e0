"""Finds iterators and queues that code takes from outside: the script would see them moved on after a run."""

from __future__ import annotations

import copy
import inspect
import itertools
import queue
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any

from .harmless_code import codes
from .installed import is_installed

COPIED: tuple[type, ...] = (itertools.count, type(iter([])), type(iter(())), type(iter(range(0))))
"""Iterators of which a copy goes on from the same place, and uses up nothing."""

QUEUES = (queue.Queue, queue.SimpleQueue)
METHODS = ("forward", "training_step", "__call__")
MOST_FUNCTIONS = 1_000


@contextmanager
def iterators_kept(*called: Any) -> Iterator[str | None]:
    """Let code that runs within use copies of the iterators that it takes from outside, and put these back.

    Args:
        called: functions, and objects that are called.

    Yields:
        Why code that runs within would be noticed all the same, as a clause; None if it would not.
    """
    undo: list[Callable[[], None]] = []
    why: str | None = None
    try:
        for name, value, replace in _taken(called):
            if type(value) in COPIED:
                replace(copy.copy(value))
                undo.append(lambda replace=replace, value=value: replace(value))  # type: ignore[misc]
            elif _moves_on(value):
                why = why or f"it uses {name!r}, a {type(value).__name__}, which moves on when it is used"
        yield why
    finally:
        while undo:
            undo.pop()()


def _moves_on(value: Any) -> bool:
    return hasattr(type(value), "__next__") or isinstance(value, QUEUES)


def _taken(called: Any) -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    """Yield what functions take from closures and global variables: name, value, and what replaces it."""
    waiting, seen = deque(_functions(called)), set[FunctionType]()
    while waiting and len(seen) < MOST_FUNCTIONS:
        function, owner = waiting.popleft()
        if function in seen or is_installed(function):
            continue
        seen.add(function)
        names = {name for code in codes(function.__code__) for name in code.co_names}
        for name, value, replace in (*_closed_over(function), *_global(function, names)):
            if isinstance(value, FunctionType | MethodType):
                waiting.extend(_functions([value]))
            yield name, value, replace
        for name in names:  # its own methods
            method = inspect.getattr_static(type(owner), name, None) if owner is not None else None
            if isinstance(method, FunctionType):
                waiting.append((method, owner))


def _functions(called: Any) -> Iterator[tuple[FunctionType, Any]]:
    for one in called:
        if isinstance(one, FunctionType):
            yield one, None
        elif isinstance(one, MethodType):
            yield from ((function, one.__self__) for function, _ in _functions([one.__func__]))
        elif one is not None:
            found = (inspect.getattr_static(type(one), name, None) for name in METHODS)
            yield from ((method, one) for method in found if isinstance(method, FunctionType))


def _closed_over(function: FunctionType) -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        yield name, value, lambda new, cell=cell: setattr(cell, "cell_contents", new)  # type: ignore[misc]


def _global(function: FunctionType, names: set[str]) -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    variables = function.__globals__
    for name in sorted(names & variables.keys()):
        yield name, variables[name], lambda new, name=name: variables.__setitem__(name, new)  # type: ignore[misc]
