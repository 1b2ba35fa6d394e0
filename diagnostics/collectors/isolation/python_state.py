"""Restores Python state that user code can reach: counters, lists, attributes, globals, closures."""

from __future__ import annotations

import copy
import functools
import io
import itertools
import logging
import sys
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from .harmless_code import codes
from .installed import is_installed, is_installed_module
from .rng import is_generator

MOST_OBJECTS = 200_000  # looked at: about half a second
LONGEST = 1_000  # elements of a container that are looked into; of a longer one only the container is put back
MOST_ELEMENTS = 20_000_000  # of containers that are put back: 160 MB of references
MOST_BYTES = 64 * 2**20  # of tensors and arrays that are copied

# Packages that send metrics away: a call cannot be taken back.
TRACKERS = frozenset(
    ("wandb", "mlflow", "comet_ml", "neptune", "clearml", "trackio", "swanlab", "aim", "dvclive", "tensorboardX")
)
# What is not looked into: it holds streams, and no state that code of the user's keeps.
_OPAQUE = (logging.Logger, logging.Handler, threading.Thread)

_ATOMS = (type(None), bool, int, float, complex, str, bytes, range, slice, CodeType, type(Ellipsis))


class CannotRestore(Exception):
    """There is state that cannot be put back; the message names it."""


@contextmanager
def python_state_kept(*roots: Any, uncalled: Iterable[Any] = (), untouched: Iterable[Any] = ()) -> Iterator[None]:
    """Restore, on leaving, all Python state that can be reached from `roots` to what it was on entering.

    That is the content of lists, dicts, sets and deques, attributes of objects, attributes of the user's classes,
    variables of closures, global variables that the user's functions name, and small tensors and arrays, each in
    place: whoever else holds the object sees it unchanged as well. Parameters and buffers of modules are left to
    `pytorch.state`, generators of random numbers likewise.

    Args:
        roots: objects whose code is called within.
        uncalled: objects whose own code is not called: they may hold open files and iterators.
        untouched: objects that are not looked into at all.

    Raises:
        CannotRestore: something moves on when it is read, as an iterator does, or there is too much.
    """
    uncalled = list(uncalled)
    state = _State([*untouched, *uncalled])
    try:
        state.collect(roots)
        state.collect_uncalled(uncalled)
        yield
    finally:
        state.restore()


class _State:
    def __init__(self, untouched: Iterable[Any]) -> None:
        self._undo: list[Callable[[], None]] = []
        # What is seen stays alive, or its id could come back as another object's.
        self._seen: dict[int, Any] = {id(value): value for value in untouched}
        self._elements = self._bytes = 0
        self._strict = True

    def collect_uncalled(self, roots: Iterable[Any]) -> None:
        self._strict = False
        for root in roots:
            self._seen.pop(id(root), None)
        self.collect(roots)

    def collect(self, roots: Iterable[Any]) -> None:
        waiting = deque(roots)
        while waiting:
            value = waiting.popleft()
            if isinstance(value, _ATOMS) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if len(self._seen) > MOST_OBJECTS:
                raise CannotRestore(f"more than {MOST_OBJECTS:,} objects hang together with it")
            waiting.extend(self._note(value))

    def restore(self) -> None:
        for undo in reversed(self._undo):
            with suppress(Exception):  # a class of the user's that refuses; the rest is still put back
                undo()

    def _note(self, value: Any) -> Iterable[Any]:
        """Remember the state of one object; return what it refers to."""
        if isinstance(value, torch.Tensor | np.ndarray):
            self._note_numbers(value)
            return ()
        if is_generator(value) or isinstance(value, (ModuleType, *_OPAQUE)):
            return ()
        if isinstance(value, FunctionType):
            return self._note_function(value)
        if isinstance(value, type):
            return () if is_installed(value) else self._note_class(value)
        if isinstance(value, MethodType):
            return (value.__self__, value.__func__)
        if isinstance(value, BuiltinMethodType):
            return (value.__self__,)
        if isinstance(value, functools.partial):
            return (value.func, *value.args, *value.keywords.values())
        if _moves_on(value):
            if not self._strict:
                return ()
            raise CannotRestore(
                f"it holds an object of type {type(value).__name__}, which moves on when it is used"
            )
        if self._strict and _top(type(value).__module__) in TRACKERS:
            raise CannotRestore(f"it holds a {type(value).__name__}, to which it may send metrics")
        if isinstance(value, nn.Module):
            self._seen.update((id(buffer), buffer) for buffer in vars(value).get("_buffers", {}).values())
        found: list[Any] = []
        if isinstance(value, tuple | frozenset):
            found += value if len(value) <= LONGEST else ()
        elif isinstance(value, dict):
            found += self._note_dict(value)
        elif isinstance(value, list | deque | set | bytearray):
            found += self._note_elements(value)
        elif isinstance(value, staticmethod | classmethod):
            found.append(value.__func__)
        elif isinstance(value, property):
            found += [part for part in (value.fget, value.fset) if part is not None]
        if not is_installed(type(value)):
            found.append(type(value))
        attributes = _attributes(value)
        if attributes is not None:
            found += self._note_dict(attributes, ordered=False)
        found += self._note_slots(value)
        return found

    def _count(self, elements: int) -> None:
        self._elements += elements
        if self._elements > MOST_ELEMENTS:
            raise CannotRestore(f"its containers hold more than {MOST_ELEMENTS:,} elements")

    def _note_dict(self, held: dict[Any, Any], ordered: bool = True) -> Iterable[Any]:
        """Note a dict; one that is `ordered` may be empty for a moment while it is put back."""
        self._count(len(held))
        before = dict(held)
        moving = {key: value for key, value in before.items() if isinstance(value, itertools.count)}

        def undo() -> None:
            plain: Any = OrderedDict if isinstance(held, OrderedDict) else dict
            if _same_pairs(held, before):
                return
            if ordered:
                plain.clear(held)
                plain.update(held, before)
                return
            for key in [key for key in held if key not in before]:
                plain.pop(held, key)
            for key, value in before.items():
                if held.get(key, undo) is not value:
                    held[key] = value

        # Something that counts on can be used up in a copy.
        for key, value in moving.items():
            dict.__setitem__(held, key, copy.copy(value))
        self._undo.append(undo)
        return [v for v in before.values() if not isinstance(v, itertools.count)] if len(held) <= LONGEST else ()

    def _note_elements(self, held: Any) -> Iterable[Any]:
        self._count(len(held))
        before = list(held)

        def undo() -> None:
            if len(held) == len(before) and all(map(_is, held, before)):
                return
            held.clear()
            (held.update if isinstance(held, set) else held.extend)(before)

        self._undo.append(undo)
        return before if len(before) <= LONGEST and not isinstance(held, bytearray) else ()

    def _note_slots(self, value: Any) -> Iterable[Any]:
        found: list[Any] = []
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            if is_installed(kind):
                continue
            for name in (slots,) if isinstance(slots, str) else slots:
                if name in ("__dict__", "__weakref__"):
                    continue
                found += self._note_attribute(value, name)
        return found

    def _note_attribute(self, owner: Any, name: str) -> Iterable[Any]:
        missing = object()
        before = getattr(owner, name, missing)

        def undo() -> None:
            now = getattr(owner, name, missing)
            if now is before:
                return
            if before is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append(undo)
        return () if before is missing else (before,)

    def _note_class(self, kind: type) -> Iterable[Any]:
        before = dict(vars(kind))

        def undo() -> None:
            now = dict(vars(kind))
            for name in [name for name in now if name not in before]:
                delattr(kind, name)
            for name, value in before.items():
                if now.get(name, undo) is not value:
                    setattr(kind, name, value)

        self._undo.append(undo)
        return [*before.values(), *(base for base in kind.__bases__ if not is_installed(base))]

    def _note_function(self, function: FunctionType) -> Iterable[Any]:
        if is_installed(function):
            return ()
        found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        found += self._note_dict(vars(function))
        for cell in function.__closure__ or ():
            found += self._note_attribute(cell, "cell_contents") if _is_assigned(cell) else ()
        for name in {name for code in codes(function.__code__) for name in code.co_names}:
            found += self._note_global(function.__globals__, name)
        return found

    def _note_global(self, variables: dict[str, Any], name: str) -> Iterable[Any]:
        missing = object()
        before = variables.get(name, missing)

        def undo() -> None:
            now = variables.get(name, missing)
            if now is before:
                return
            if before is missing:
                variables.pop(name)
            else:
                variables[name] = before

        if self._strict and isinstance(before, ModuleType) and _top(before.__name__) in TRACKERS:
            raise CannotRestore(f"its code uses {before.__name__}, to which it may send metrics")
        if isinstance(before, itertools.count):
            variables[name] = copy.copy(before)
        self._undo.append(undo)
        if isinstance(before, ModuleType) and not is_installed_module(before.__name__):
            return self._note_dict(vars(before), ordered=False)  # such as a settings.py beside the script
        return () if before is missing or isinstance(before, itertools.count | ModuleType) else (before,)

    def _note_numbers(self, value: Any) -> None:
        if isinstance(value, nn.Parameter):
            return
        size = int(getattr(value, "nbytes", 0))
        if self._bytes + size > MOST_BYTES:
            return  # data, not a counter
        self._bytes += size
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject or not value.flags.writeable:
                return
            content = value.copy()

            def undo_array() -> None:
                if value.tobytes() != content.tobytes():
                    value[...] = content

            self._undo.append(undo_array)
            return
        if (
            value.is_meta
            or value.layout is not torch.strided
            or isinstance(value, nn.parameter.UninitializedBuffer)
        ):
            return
        try:
            version, saved = value._version, value.detach().clone()
        except Exception:  # a tensor of a kind of its own, or of inference mode, which nobody writes to
            return

        def undo_tensor() -> None:
            if value._version != version:
                with torch.no_grad():
                    value.copy_(saved)

        self._undo.append(undo_tensor)


def _same_pairs(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """Whether two dicts hold the very same objects in the same order."""
    if len(one) != len(other):
        return False
    pairs = zip(dict.items(one), other.items(), strict=True)
    return all(key is before and value is was for (key, value), (before, was) in pairs)


def _is(one: Any, other: Any) -> bool:
    return one is other


def _attributes(value: Any) -> dict[str, Any] | None:
    found = getattr(value, "__dict__", None)
    return found if type(found) is dict else None


def _moves_on(value: Any) -> bool:
    """Whether using an object changes it in a way that cannot be undone."""
    if isinstance(value, types.GeneratorType | types.AsyncGeneratorType) or hasattr(type(value), "__next__"):
        return not isinstance(value, itertools.count)
    return isinstance(value, io.FileIO | io.BufferedIOBase | io.TextIOWrapper) and not _is_standard(value)


def _is_standard(stream: Any) -> bool:
    """Whether this is a standard stream, or one in memory."""
    return isinstance(stream, io.BytesIO) or any(stream is getattr(sys, n) for n in ("stdin", "stdout", "stderr"))


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_assigned(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
