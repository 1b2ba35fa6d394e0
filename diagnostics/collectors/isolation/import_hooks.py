"""Calls a function with a module once the user's program imports it; imports nothing itself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from .patching import Patches

Then = Callable[[ModuleType], None]


class _Finder(MetaPathFinder):
    """Waits for modules; one for all of them, since each of a program's thousands of imports asks it."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Then]] = {}
        self._searched = set[str]()  # names that are being searched for: that search comes here again

    def wait(self, name: str, then: Then) -> None:
        self._leave()
        sys.meta_path.insert(0, self)  # before the finders that the program has added since
        self._waiting.setdefault(name, []).append(then)

    def forget(self, name: str, then: Then) -> None:
        if then in (left := self._waiting.get(name, [])):
            left.remove(then)
            if not left:
                self._taken(name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._waiting or fullname in self._searched:
            return None
        self._searched.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searched.discard(fullname)
        # Not every search imports: transformers checks whether torch exists.
        if spec is not None and spec.loader is not None:
            Patches().around(spec.loader, "exec_module", partial(self._executing, fullname))
        return spec

    def _executing(self, name: str, execute: Then) -> Then:
        def executed(module: ModuleType) -> None:
            execute(module)
            for then in self._taken(name):
                then(module)

        return executed

    def _taken(self, name: str) -> list[Then]:
        found = self._waiting.pop(name, [])
        if not self._waiting:
            self._leave()
        return found

    def _leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


_FINDER = _Finder()


def after_import(name: str, then: Then) -> Callable[[], None]:
    """Call `then` with a module once it is imported; at once if it already is.

    Args:
        name: of the module, with its packages: ``transformers.trainer``.
        then: must not raise; an exception would come out of the user's import.

    Returns:
        A function that cancels the call, if it has not happened yet.
    """
    if (module := sys.modules.get(name)) is not None:
        then(module)
        return lambda: None
    _FINDER.wait(name, then)
    return lambda: _FINDER.forget(name, then)
