"""A weak mapping keyed by identity: a user's ``__eq__`` and ``__hash__`` are never called.

`weakref.WeakKeyDictionary` and `WeakSet` hash and compare their keys, and a model may define both as it likes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class IdentityMap(MutableMapping[Key, Value], Generic[Key, Value]):
    """Values by object, each entry for as long as its object lives.

    An object that takes no weak references, with ``__slots__`` and no ``__weakref__``, is held until it is deleted
    from the mapping. Iterating takes a snapshot, so that an object may die meanwhile, or another thread add one.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], Key | None], Value]] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        number, entries = id(key), self._entries

        def gone(reference: weakref.ref[Key]) -> None:
            entry = entries.get(number)
            if entry is not None and entry[0] is reference:  # not a later object in the same place
                del entries[number]

        held = entries.get(number)
        if held is not None and held[0]() is key:
            entries[number] = (held[0], value)
            return
        try:
            entries[number] = (weakref.ref(key, gone), value)
        except TypeError:
            entries[number] = (lambda: key, value)

    def __getitem__(self, key: Key) -> Value:
        entry = self._entries.get(id(key))
        if entry is None or entry[0]() is not key:
            raise KeyError(f"{type(key).__name__} at {id(key):#x}")
        return entry[1]

    def __delitem__(self, key: Key) -> None:
        self[key]
        del self._entries[id(key)]

    def __contains__(self, key: object) -> bool:
        entry = self._entries.get(id(key))
        return entry is not None and entry[0]() is key

    def __iter__(self) -> Iterator[Key]:
        for reference, _ in list(self._entries.values()):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self._entries)
