"""Separates the modules that this library has imported from a script's own modules of the same names.

A script with a `rich.py` or `diagnostics.py` in its folder imports that one, as under `python`, although
`diagnose run` has already imported the other. Only names in the script's folder are affected, and rich.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
import zipimport
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType

ALIAS = "_diagnostics_of_this_run"  # name of this package if the script has one of the same name
_OURS = __name__.partition(".")[0]
_ROOT = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(rf"^([ \t]*from ){_OURS}\b".encode(), re.MULTILINE)
# Importing it draws from the generator of `random`, which changes a script that has seeded it.
_DRAWS = frozenset({"rich"})
# An interpreter has imported these before it comes to the script's folder.
_STARTED_WITH = frozenset({"__main__", "encodings", "sitecustomize", "usercustomize", *sys.builtin_module_names})
_KINDS = (
    (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
    (importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES),
    (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
)


class LibraryModules:
    """Modules of this library with the same name as the script's: hidden while it runs, shown for the report.

    Attributes:
        clashes: those names, apart from the name of this library itself, which runs under an alias then.
    """

    clashes: frozenset[str]

    def __init__(self, folder: str | None) -> None:
        """Find them.

        Args:
            folder: the folder or zip file that the script's imports search first; None if there is none.
        """
        self._folder = folder
        self.clashes = frozenset() if folder is None else frozenset(_shadowed(folder))
        self._names = _DRAWS | self.clashes
        self._ours: dict[str, ModuleType] = {}

    def hide(self) -> None:
        """Let the script import its own from now on. This library must have imported everything before."""
        self._ours = self._taken()

    @contextlib.contextmanager
    def shown(self, *, running: bool = False) -> Iterator[None]:
        """Within, imports find this library's modules, and the script's folder is not searched.

        Args:
            running: whether the script still runs; then its folder is searched, since its threads may import.
        """
        theirs, path = self._taken(), list(sys.path)
        sys.modules.update(self._ours)
        if not running:
            sys.path[:] = [entry for entry in path if entry != self._folder]
        try:
            yield
        finally:
            self._ours = self._taken()
            sys.modules.update(theirs)
            if not running:
                sys.path[:] = path

    def _taken(self) -> dict[str, ModuleType]:
        """Take all modules of these names out of `sys.modules`."""
        names = [name for name in sys.modules if name.partition(".")[0] in self._names]
        return {name: sys.modules.pop(name) for name in names}


def _shadowed(folder: str) -> Iterable[str]:
    """Yield the imported modules for which a folder holds others of the same name."""
    finder: importlib.machinery.FileFinder | zipimport.zipimporter
    try:
        finder = zipimport.zipimporter(folder)
    except zipimport.ZipImportError:
        finder = importlib.machinery.FileFinder(folder, *_KINDS)
    for name in {name.partition(".")[0] for name in sys.modules} - _STARTED_WITH:
        spec = finder.find_spec(name)
        if spec is None or spec.loader is None:  # a folder without an __init__.py is searched last of all
            continue
        loaded = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None)
        if loaded not in ("built-in", "frozen") and not _same_file(loaded, spec.origin):
            yield name


def _same_file(one: str | None, other: str | None) -> bool:
    """Whether two paths lead to one file, as in a clone that is reached through a link."""
    try:
        return one == other or (one is not None and other is not None and os.path.samefile(one, other))
    except OSError:  # within a zip file, or not there
        return False


def is_alias() -> bool:
    """Whether this library runs under another name, see `under_alias`."""
    return _OURS == ALIAS


def is_shadowed(folder: str | None) -> bool:
    """Whether a script's folder holds a module of this library's own name."""
    return folder is not None and _OURS in _shadowed(folder)


def under_alias(module: str) -> ModuleType:
    """Import this library once more under another name, so that its own name is free for the script's module.

    The exceptions, and the state from the start of the process, stay the same objects.

    Args:
        module: of this library, the one to return: ``run.session``.
    """
    sys.meta_path.insert(0, _AliasFinder())
    for name in [name for name in sys.modules if name.partition(".")[0] == _OURS]:
        loaded, relative = sys.modules.pop(name), name.removeprefix(f"{_OURS}.")
        if relative in ("launch", "errors"):
            sys.modules[f"{ALIAS}.{relative}"] = loaded
    return importlib.import_module(f"{ALIAS}.{module}")


class _AliasFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == ALIAS:
            root = str(_ROOT / "__init__.py")
            loader = _AliasLoader(ALIAS, root)
            return importlib.util.spec_from_file_location(
                ALIAS, root, loader=loader, submodule_search_locations=[str(_ROOT)]
            )
        if not fullname.startswith(f"{ALIAS}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            spec.loader = _AliasLoader(fullname, spec.origin)
        return spec


class _AliasLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of this library with its absolute imports renamed to the alias; caches no bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        source = _IMPORT.sub(rb"\g<1>" + ALIAS.encode(), self.get_data(self.path))
        return compile(source, self.path, "exec", dont_inherit=True)
