"""Finds the random generators of a data pipeline, so that they can be restored."""

from __future__ import annotations

import functools
import random
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

MOST_OBJECTS = 20_000  # looked at in search of generators: some 20 ms
LONGEST = 1_000  # elements of a list or dict that is looked into: a longer one holds data, not settings

# The methods that data passes through; a generator among the module's globals is used in one of them.
METHODS = ("__getitem__", "__getitems__", "__iter__", "__call__", "forward")

LEAVES = (str, bytes, int, float, complex, np.ndarray, type, ModuleType)  # hold no settings
KINDS = (random.Random, np.random.Generator, np.random.RandomState)


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
