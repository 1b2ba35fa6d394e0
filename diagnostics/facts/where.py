"""A place in the user's code, and how files are told apart and named."""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from dataclasses import field
from pathlib import Path
from typing import Final

from diagnostics.facts.frozen import frozen

LIBRARY = str(Path(__file__).resolve().parents[1]) + os.sep
_INSTALLED = re.compile(  # on any machine: a traceback may come from another
    r"^\.{3}[\\/](?:torch|torchvision|transformers|diffusers|accelerate|peft|trl|datasets|keras|tensorflow|lightning|deepspeed)"
    r"[\\/]"  # cut by hand
    r"|site-packages|dist-packages|^<(?:frozen|__array_function__|decorator-gen)|__autograph_generated_file"
    r"|[\\/]lib(?:64)?[\\/]python[23]|\\(?:python\d*|\w+conda\d*|miniforge\d*|envs\\[^\\]+)\\lib\\"
    r"|[\\/](?:bin|Scripts)[\\/](?:torchrun|accelerate(?:-launch)?|deepspeed|trl|lightning|fabric|axolotl|composer|swift"
    r"|transformers(?:-cli)?|llamafactory-cli|pytest|ray|papermill|ipython3?|jupyter[\w-]*)(?:$|\.exe)"
    r"|[\\/]unsloth_compiled_cache[\\/]"  # written by Unsloth beside the script
    r"|^(?![\\/~]|[A-Za-z]:).*\.(?:pyx|pxi|pxd)$",  # compiled with a package, which names it from its own folder
    re.IGNORECASE,
)
_OLD_CELL = re.compile(r"[<\\/]ipython-input-(?P<number>\d+)-\w+(?:>|\.py)$")


@frozen
class Where:
    """A line in the user's own code.

    Attributes:
        end_line: where the expression on it ends, if that is known, as are its columns.
        column: of its first character, counted from 1.
        end_column: behind its last one.
    """

    file: str
    line: int
    function: str
    end_line: int | None = field(default=None, compare=False, repr=False)
    column: int | None = field(default=None, compare=False, repr=False)
    end_column: int | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """Render as `train.py:31 in main`."""
        place = f"{self.file}:{self.line}"
        return place if self.function == "<module>" else f"{place} in {self.function}"


@frozen
class Places:
    """The lines of the script that one training goes through; None for one that is not known.

    Attributes:
        loader: begins to iterate the loader of the first batch.
        model: calls the model.
        loss: computes the loss.
        backward: computes the gradients.
        optimizer: creates the optimizer, or compiles the model with it.
        training: calls the method that trains, as `fit`.
    """

    loader: Where | None = None
    model: Where | None = None
    loss: Where | None = None
    backward: Where | None = None
    optimizer: Where | None = None
    training: Where | None = None


NO_PLACES: Final = Places()
"""Of a training of which no line is known."""


def is_user_code(file: str) -> bool:
    """Whether a file is the user's own: not installed, not standard library, not this library."""
    return not file.startswith((LIBRARY, *_standard_library())) and _INSTALLED.search(file) is None


def shorten(file: str) -> str:
    """Shorten a path: from the package or the working directory on, or a notebook's cell."""
    if (cell := _cell(file)) is not None:
        return f"In[{cell}]"
    for marker in ("site-packages", "dist-packages"):
        if marker in file:
            return file.split(marker, 1)[1].lstrip("/\\").replace("\\", "/")
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


@functools.cache
def _standard_library() -> tuple[str, ...]:
    """Return its folders; late, because Python imports the settings of its build to know them."""
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return tuple(os.path.join(path, "") for path in paths if path)


def _cell(file: str) -> int | None:
    """Return the number of the notebook's cell that Python knows under this file name; None if it is none."""
    if (cell := _OLD_CELL.search(file)) is not None:
        return int(cell["number"])
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    names: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return names.get(file)
