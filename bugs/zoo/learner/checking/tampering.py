"""Finds functions that a script has replaced instead of repairing itself, and our solutions that it opens."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

# Packages whose functions a repair calls and does not replace.
WATCHED = {
    *("torch", "transformers", "peft", "accelerate", "keras", "keras_hub", "tensorflow", "sklearn", "numpy"),
    *("datasets", "bugs", "diagnostics", "builtins", "json", "pathlib", "os", "io"),
}
STAND_INS = (
    "__main__",
    "__mp_main__",
    "unittest.mock",
)  # modules of whose classes no object stands in a framework


class SolutionReads:
    """Notes when this process opens a file of our solutions, or starts a program on one.

    An audit hook cannot be removed, so it looks only while `active`.
    """

    def __init__(self, folder: Path) -> None:
        self.active, self.seen = True, set[str]()
        self._folder = os.path.realpath(folder) + os.sep
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active or event not in ("open", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            return
        if event == "open":
            file = arguments[0]
            words = [os.fsdecode(file)] if isinstance(file, str | bytes | os.PathLike) else []
        else:
            words = [word for part in arguments for word in _words(part)]
        for word in words:
            if "solutions" in word and (event != "open" or os.path.realpath(word).startswith(self._folder)):
                self.seen.add(word)


def replaced(script: Path) -> list[str]:
    """Return the functions of frameworks, zoo and library that the script has replaced, as "torch.Tensor.argmax".

    A subclass, a callback or a hook of the script's own replaces nothing.
    """
    file, found = os.path.realpath(script), set()
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and module.__name__.partition(".")[0] in WATCHED:
            found.update(f"{module.__name__}.{name}" for name in _replaced_in(module, file))
    return sorted(found)


def _replaced_in(module: ModuleType, file: str) -> Iterator[str]:
    for name, value in list(vars(module).items()):
        if name.startswith("__"):
            continue
        if _is_theirs(value, file):
            yield name
        elif issubclass(type(value), type) and value.__module__ == module.__name__:
            for part, inner in list(vars(value).items()):
                if _is_theirs(inner, file):
                    yield f"{name}.{part}"


def _is_theirs(value: Any, file: str) -> bool:
    kind = type(value)  # `isinstance` would ask deprecated objects for their class, and they would warn
    if kind in (staticmethod, classmethod):
        value = value.__func__
    elif kind is property:
        value = value.fget
    if type(value) is FunctionType:
        return bool(value.__code__.co_filename == file)
    return not issubclass(kind, type) and kind.__module__ in STAND_INS


def _words(value: Any) -> list[str]:
    if isinstance(value, str | bytes | os.PathLike):
        return [os.fsdecode(value)]
    return [word for part in value for word in _words(part)] if isinstance(value, list | tuple) else []
