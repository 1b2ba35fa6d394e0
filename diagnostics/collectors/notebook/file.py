"""Reads the code cells of a notebook's file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostics.errors import InvalidInput, message_of, what
from diagnostics.text.files import bytes_of

LARGEST = 256 * 2**20  # bytes: a notebook with every picture of a long run in it
PYTHON = ("python", "ipython")
SKIPPED = frozenset({"skip-execution"})  # tags of cells that tools leave out when they run a notebook
FAILS = frozenset({"raises-exception"})  # of cells that are meant to fail


@dataclass(frozen=True)
class CodeCell:
    """A code cell.

    Attributes:
        number: among the code cells, from 1.
        source: its text.
        count: the number of its last run; None if it was not run.
        failed: whether that run ended with an error, or is meant to.
        skipped: whether tools leave it out.
    """

    number: int
    source: str
    count: int | None = None
    failed: bool = False
    skipped: bool = False


def code_cells(path: Path) -> list[CodeCell]:
    """Return the code cells of a notebook of Python, in their order.

    Raises:
        InvalidInput: the file cannot be read, is no notebook, or is one of another format or language.
    """
    notebook = _loaded(path)
    version = notebook.get("nbformat")
    if "worksheets" in notebook or (isinstance(version, int) and version < 4):
        raise InvalidInput(
            f"{path} is a notebook of format {version}, from before 2015. Convert it first: "
            f"jupyter nbconvert --to notebook --nbformat 4 {path.name}"
        )
    if not isinstance(notebook.get("cells"), list):
        raise InvalidInput(
            f"{path} is JSON, but not a notebook: it has no list of cells. Pass a file that Jupyter has saved."
        )
    for language in _languages(notebook.get("metadata")):
        if not language.lower().startswith(PYTHON):
            raise InvalidInput(f"{path} is a notebook of {language}. Only notebooks of Python can be checked.")
    cells = [cell for cell in notebook["cells"] if isinstance(cell, Mapping) and cell.get("cell_type") == "code"]
    return [_cell(number, cell) for number, cell in enumerate(cells, 1)]


def _loaded(path: Path) -> Mapping[str, Any]:
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Pass a notebook in it, a file that ends in .ipynb.")
    raw = bytes_of(path, LARGEST, "Clear outputs.")
    try:
        text = raw.decode("utf-8-sig")
        loaded = json.loads(text)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a notebook: it is no text in UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a notebook: {_why_no_json(path, raw, error)}") from None
    if not isinstance(loaded, Mapping):
        raise InvalidInput(
            f"{path} is JSON, but not a notebook: it holds {what(loaded)}, not an object with cells."
        )
    return loaded


def _why_no_json(path: Path, raw: bytes, error: Exception) -> str:
    if not raw.strip():
        return "it is empty."
    if path.suffix in (".py", ".md", ".Rmd", ".qmd"):
        return f"it is a text. If jupytext keeps it, convert it first: jupytext --to ipynb {path.name}"
    if b"<<<<<<<" in raw and b">>>>>>>" in raw:
        return "it holds the marks of a merge conflict of git. Resolve that first."
    return f"it is no JSON ({message_of(error)})."


def _languages(metadata: Any) -> Iterator[str]:
    """Yield the language of the kernel, as often as the notebook says it: Sage says Python in one place."""
    if not isinstance(metadata, Mapping):
        return
    for part, name in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(part)
        if isinstance(found, Mapping) and isinstance(found.get(name), str) and found[name]:
            yield found[name]


def _cell(number: int, cell: Mapping[str, Any]) -> CodeCell:
    source, count, metadata = cell.get("source", ""), cell.get("execution_count"), cell.get("metadata")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    listed = metadata.get("tags") if isinstance(metadata, Mapping) else None
    tags = {tag for tag in listed if isinstance(tag, str)} if isinstance(listed, list) else set()
    outputs = cell.get("outputs")
    failed = isinstance(outputs, list) and any(
        isinstance(output, Mapping) and output.get("output_type") == "error" for output in outputs
    )
    return CodeCell(
        number,
        source if isinstance(source, str) else "",
        count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else None,
        failed or bool(tags & FAILS),
        bool(tags & SKIPPED),
    )
