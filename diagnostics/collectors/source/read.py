"""Finds patterns in the source of a script and of the modules beside it that it has imported."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from diagnostics.errors import InvalidInput
from diagnostics.facts.where import Where, is_user_code, shorten
from diagnostics.facts.written import WrittenPattern
from diagnostics.text.files import bytes_of

from . import patterns
from .scopes import Found, Source

MOST_FILES = 32
LARGEST = 2**20  # bytes of a file

_FINDERS: dict[str, Callable[[Source], Iterator[Found]]] = {  # imported before the script can change what is found
    module.name: importlib.import_module(f"{patterns.__name__}.{module.name}").find
    for module in pkgutil.iter_modules(patterns.__path__)
}


def patterns_of(files: Iterable[str]) -> Iterator[WrittenPattern]:
    """Yield what is found in these files; a file that cannot be read or parsed is left out."""
    for file in files:
        tree = parsed(file)
        if tree is not None:
            yield from patterns_in(tree, shorten(file))


def patterns_in(tree: ast.Module, file: str) -> Iterator[WrittenPattern]:
    """Yield what each module of `patterns` finds: its function `find` takes a source, its name is the kind.

    Args:
        tree: the parsed module.
        file: its name, as shown.
    """
    source = Source(tree)
    for kind, find in _FINDERS.items():
        for names, at, function, by_name in find(source):
            where = Where(file, at.lineno, function)
            yield WrittenPattern(kind, names, where, at.col_offset + 1, by_name)


def files_of(script: str, folder: str | None) -> list[str]:
    """Return a script's file, and those of the modules in its folder that it has imported."""
    found = [script]
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and folder is not None and file.startswith(folder) and is_user_code(file):
            found.append(file)
    return list(dict.fromkeys(found))[:MOST_FILES]


def parsed(file: str) -> ast.Module | None:
    """Parse a file of Python; None if it is none, or cannot be read or parsed."""
    try:
        return module_of(Path(file)) if file.endswith(".py") else None
    except InvalidInput:
        return None


def module_of(path: Path) -> ast.Module:
    """Parse a file of Python.

    Raises:
        InvalidInput: it cannot be read or parsed.
    """
    raw = bytes_of(path, LARGEST)
    try:
        return ast.parse(raw)
    except SyntaxError as error:
        raise InvalidInput(f"{path} is not valid Python: line {error.lineno or 1}: {error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidInput(f"{path} cannot be parsed: {type(error).__name__}.") from None
