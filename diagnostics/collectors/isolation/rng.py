"""Finds the random generators of a data pipeline, to restore them, and iterators that code takes from outside."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import queue
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .harmless_code import codes
from .installed import is_installed

MOST_OBJECTS = 20_000  # looked at in search of generators: some 20 ms
LONGEST = 1_000  # elements of a list or dict that is looked into: a longer one holds data, not settings

# The methods that data passes through; a generator among the module's globals is used in one of them.
METHODS = ("__getitem__", "__getitems__", "__iter__", "__call__", "forward")

LEAVES = (str, bytes, int, float, complex, np.ndarray, type, ModuleType)  # hold no settings
KINDS = (random.Random, np.random.Generator, np.random.RandomState)
COPIED: tuple[type, ...] = (itertools.count, type(iter([])), type(iter(())), type(iter(range(0))))
"""Iterators of which a copy goes on from the same place, and uses up nothing."""

QUEUES = (queue.Queue, queue.SimpleQueue)
MOVING = ("forward", "training_step", "__call__")
MOST_FUNCTIONS = 1_000


def is_generator(value: Any) -> bool:
    """Return whether this is a generator of Python, NumPy or, where it is in use, PyTorch."""
    return isinstance(value, (*KINDS, *_of_torch("Generator")))


def _of_torch(kind: str) -> tuple[type, ...]:
    torch = sys.modules.get("torch")  # a Keras program has none, and must not wait for it
    return () if torch is None else (getattr(torch, kind),)


@dataclass(frozen=True)
class OwnGenerator:
    """A generator of PyTorch, NumPy or Python, read and restored the same way."""

    generator: Any

    def state(self) -> Any:
        """Return the state, as the generator's kind keeps it."""
        match self.generator:
            case np.random.Generator():
                return self.generator.bit_generator.state
            case random.Random():
                return self.generator.getstate()
        return self.generator.get_state()

    def restore(self, state: Any) -> None:
        """Return to a state that `state` gave."""
        match self.generator:
            case np.random.Generator():
                self.generator.bit_generator.state = state
            case random.Random():
                self.generator.setstate(state)
            case _:
                self.generator.set_state(state)


def generators_within(*roots: Any) -> list[OwnGenerator]:
    """List the generators that can be reached from `roots`: attributes, elements, closures, globals of methods."""
    kinds = (*KINDS, *_of_torch("Generator"))
    is_kind: dict[type, bool] = {}  # `isinstance` of a torch.Generator runs Python code, for each object
    found = []
    for value in objects_within(*roots):
        kind = type(value)
        if kind not in is_kind:
            is_kind[kind] = issubclass(kind, kinds) and not issubclass(kind, random.SystemRandom)
        if is_kind[kind]:
            found.append(OwnGenerator(value))
    return found


def objects_within(*roots: Any) -> Iterator[Any]:
    """Yield each object within reach of `roots` once, at most `MOST_OBJECTS`, but no part of a generator."""
    waiting, seen = deque(roots), set[int]()
    closed = (*KINDS, *_of_torch("Generator"), *LEAVES, *_of_torch("Tensor"))
    is_closed: dict[type, bool] = {}  # by class: datasets hold thousands of objects of a few classes
    kept = []  # what is seen stays alive, or its id could come back as another object's
    while waiting and len(seen) < MOST_OBJECTS:
        value = waiting.popleft()
        if id(value) in seen or value is None:
            continue
        seen.add(id(value))
        kept.append(value)
        yield value
        kind = type(value)
        is_first = kind not in is_closed
        if is_first:
            is_closed[kind] = issubclass(kind, closed)
        if not is_closed[kind]:
            waiting.extend(_within(value, is_first))


def _within(value: Any, is_first: bool) -> Iterator[Any]:
    """Yield what an object holds: attributes, elements, closures, and generators among its methods' globals.

    Args:
        value: no leaf.
        is_first: whether it is the first of its class: the methods of the others are the same.
    """
    if isinstance(value, dict | list | tuple | set | frozenset | deque):
        if len(value) <= LONGEST:
            yield from value.values() if isinstance(value, dict) else value
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, BuiltinMethodType):  # such as rng.random; its __self__ is a module if it is a function
        yield value.__self__
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
        return
    elif is_first:
        for name in METHODS:
            method = getattr(type(value), name, None)
            if isinstance(method, FunctionType):
                yield from _of_function(method)
    try:
        yield from list(vars(value).values())
    except Exception:  # no attributes, or a `__dict__` of its own making
        return


def _of_function(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a variable that was not assigned yet
            continue
    yield from function.__defaults__ or ()
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if is_generator(used):
            yield used


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
            found = (inspect.getattr_static(type(one), name, None) for name in MOVING)
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
