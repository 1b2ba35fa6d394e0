"""Calls a function with a module once the user's program imports it; imports nothing itself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from .patching import Patches


class _Finder(MetaPathFinder):
    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # or the following search would end here again
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)  # not every search imports: transformers checks whether torch exists
        if spec is not None and spec.loader is not None:
            Patches().around(spec.loader, "exec_module", self._executing)
        return spec

    def _executing(self, execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        def executed(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then(module)

        return executed


def after_import(name: str, then: Callable[[ModuleType], None]) -> Callable[[], None]:
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
    finder = _Finder(name, then)
    sys.meta_path.insert(0, finder)
    return lambda: sys.meta_path.remove(finder) if finder in sys.meta_path else None
