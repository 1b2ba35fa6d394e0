"""A second object with the same attributes, which does not keep the first alive."""

from __future__ import annotations

import atexit
import contextlib
import gc
import time
import weakref
from types import FunctionType, ModuleType
from typing import Any

from diagnostics.collectors.isolation.identity import IdentityMap

WHOLE_HEAP = 2  # the oldest generation; a model is in it soon
MOST_OBJECTS = 5000  # that are searched behind one attribute
MOST_OF_ALL = 200_000  # behind all attributes of a model
SHARE, AT_FIRST = 0.01, 0.5  # of the time that passes, and seconds beside it, that collections may take longer
NEEDED = {"_parameters", "_buffers", "param_groups", "state"}
PLAIN = {bool, int, float, complex, str, bytes, type(None)}


def weak_twin(original: Any) -> Any:
    """Return another object of the same class that shares the attribute dictionary.

    A reference to the original would keep a module or an optimizer and its memory alive, and hide that its owner
    has deleted it. Attributes set on one object are set on the other.

    An attribute that leads back to the original, such as the Trainer of a LightningModule, does not keep it alive
    either. Once the original is freed, the twin has all attributes but these.

    Returns:
        The original where no twin is possible: without a ``__dict__``, or with a ``__del__``, which would run
        twice.
    """
    kind = type(original)
    if hasattr(kind, "__del__") or not hasattr(original, "__dict__"):
        return original
    try:
        twin = object.__new__(kind)
        object.__setattr__(twin, "__dict__", original.__dict__)
        _twins.add(original, twin)
    except Exception:  # a class with its own way to make objects, or without weak references
        return original
    return twin


class _Twins:
    """Takes from each twin what leads back to its original while Python collects garbage.

    An original with such attributes is in a reference cycle with or without its twin, so only a collection can
    free it. The twin therefore shares all attributes at any other time.
    """

    def __init__(self) -> None:
        self._of: IdentityMap[Any, list[weakref.ref[Any]]] = IdentityMap()
        self._apart: list[tuple[weakref.ref[Any], list[weakref.ref[Any]]]] = []
        self._listens = False
        self._since = self._spent = 0.0

    def add(self, original: Any, twin: Any) -> None:
        """Look after a twin that shares the attributes of an original."""
        reference = weakref.ref(twin)
        self._of[original] = [*(other for other in self._of.get(original, ()) if other() is not None), reference]
        if not self._listens:
            self._listens, self._since = True, time.perf_counter()
            gc.callbacks.append(self._on_collection)
            atexit.register(gc.callbacks.remove, self._on_collection)  # collections follow without our modules

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] == WHOLE_HEAP:
            begin = time.perf_counter()
            if phase == "stop":
                self._join()
            elif self._spent <= AT_FIRST + SHARE * (begin - self._since):  # else a later collection frees them
                self._part()
            self._spent += time.perf_counter() - begin

    def _part(self) -> None:
        for original, references in self._of.items():
            with contextlib.suppress(Exception):  # of what another thread changes meanwhile
                twins = [twin for reference in references if (twin := reference()) is not None]
                own = _without_way_back(original, twins) if twins else None
                if own is not None:
                    self._apart.append((weakref.ref(original), references))
                    _share(own, references)

    def _join(self) -> None:
        apart, self._apart = self._apart, []
        for reference, references in apart:
            if (original := reference()) is not None:
                _share(original.__dict__, references)


def _share(attributes: dict[str, Any], references: list[weakref.ref[Any]]) -> None:
    for reference in references:
        if (twin := reference()) is not None:
            object.__setattr__(twin, "__dict__", attributes)


class _WayBack:
    """Searches for a chain of references that ends at an object.

    Args:
        original: that object.
        twins: its twins, which are not searched.
    """

    def __init__(self, original: Any, twins: list[Any]) -> None:
        self._ends = {id(original), id(original.__dict__)}
        self._searched = {id(twin) for twin in twins}
        self._left = MOST_OF_ALL

    def is_behind(self, value: Any) -> bool:
        """Return whether a chain starts at a value, or may start there: too many objects are behind it."""
        found: set[int] = set()
        waiting = [value]
        while waiting:
            each = waiting.pop()
            kind, number = type(each), id(each)
            if number in self._ends:
                self._ends.add(id(value))
                return True
            if kind in PLAIN or number in found or number in self._searched:
                continue
            if issubclass(kind, type | ModuleType):  # where many programs keep everything
                continue
            found.add(number)
            self._left -= 1
            if len(found) > MOST_OBJECTS or self._left < 0:
                self._ends.add(id(value))  # such as a trainer that each part of the model knows
                return True
            parts = gc.get_referents(each)
            if kind is FunctionType:
                globally = each.__globals__, each.__builtins__
                parts = [part for part in parts if not any(part is names for names in globally)]
            waiting += parts
        self._searched |= found
        return False


def _without_way_back(original: Any, twins: list[Any]) -> dict[str, Any] | None:
    """Return the attributes that do not lead back to their owner; None if all of them are such."""
    search = _WayBack(original, twins)
    copies: dict[int, Any] = {}

    def copied(module: Any) -> Any:
        """Return a module, or a copy without the attributes that lead back; both have the same tensors."""
        if module is None or hasattr(type(module), "__del__") or not search.is_behind(module):
            return module
        if (known := copies.get(id(module))) is None:
            copies[id(module)] = known = object.__new__(type(module))
            object.__setattr__(known, "__dict__", kept(module))
        return known

    def kept(owner: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in list(owner.__dict__.items()):
            if name in NEEDED:
                found[name] = value
            elif name == "_modules":
                found[name] = _same_or(value, {part: copied(module) for part, module in value.items()})
            elif name.endswith("_hooks") and isinstance(value, dict):
                found[name] = _same_or(value, {n: hook for n, hook in value.items() if not search.is_behind(hook)})
            elif not search.is_behind(value):
                found[name] = value
        return found

    found, shared = kept(original), original.__dict__
    same = found.keys() == shared.keys() and all(found[name] is value for name, value in shared.items())
    return None if same else found


def _same_or(container: dict[Any, Any], entries: dict[Any, Any]) -> dict[Any, Any]:
    """Return a container, or another of its class if the entries are not its own."""
    if entries.keys() == container.keys() and all(entry is container[key] for key, entry in entries.items()):
        return container
    return type(container)(entries)


_twins = _Twins()
