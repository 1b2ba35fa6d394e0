"""An executed notebook as readers get it: on the page, and as a download."""

from __future__ import annotations

import copy
import re
from pathlib import Path

from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"File (?P<file>.+?):\d+")
_PACKAGE = re.compile(r"site-packages/(?P<name>\w+)")


def fair_copy(notebook: NotebookNode, zoo: Path) -> NotebookNode:
    """Return a copy with short tracebacks, short paths, and nothing of the machinery that ran it.

    Args:
        notebook: as it was executed.
        zoo: the repository's root; paths under it are shown from there, and those of installed packages from
            the package's name.
    """
    fair = copy.deepcopy(notebook)
    for key in ("papermill", "widgets"):
        fair.metadata.pop(key, None)
    for cell in fair.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.metadata.tags.append("remove-cell")
            cell.metadata["jupyter"] = {"source_hidden": True}
        for output in cell.get("outputs", []):
            _tidy(output, zoo)
    return fair


def _tidy(output: NotebookNode, zoo: Path) -> None:
    if output.output_type == "error":
        output.traceback = [short_paths(part, zoo) for part in shorten(output.traceback, zoo)]
    elif output.output_type == "stream":
        output.text = short_paths(output.text, zoo)
    else:
        for kind in ("text/plain", "text/html", "text/markdown"):
            if kind in output.data:
                output.data[kind] = short_paths(output.data[kind], zoo)


def short_paths(text: str, zoo: Path) -> str:
    """Show the zoo's files from its root, installed packages from their names, and nobody's home."""
    text = re.sub(r"/[^\s'\"<>:]*/site-packages/", "", text)  # first: the zoo's environment lies inside the zoo
    return text.replace(f"{zoo}/", "").replace(f"{Path.home()}/", "~/")


def shorten(traceback: list[str], zoo: Path) -> list[str]:
    """Leave out the frames inside of installed packages, except the last, and say how many and whose.

    Args:
        traceback: as IPython gives it: one text a frame, between a heading and the exception's own words.
        zoo: the repository's root; frames of files under it stay.
    """
    frames = [number for number, part in enumerate(traceback) if _file(part)]
    hidden = [number for number in frames[:-1] if not _is_readers(traceback[number], zoo)]
    kept: list[str] = []
    run: list[str] = []
    for number, part in enumerate(traceback):
        if number in hidden:
            run.append(part)
            continue
        if run:
            kept.append(_left_out(run))
            run = []
        kept.append(part)
    return kept


def _file(part: str) -> str | None:
    found = _FRAME.match(_ANSI.sub("", part))
    return found and found["file"]


def _is_readers(part: str, zoo: Path) -> bool:
    file = Path(_file(part) or "")
    return file.is_relative_to(zoo) and "site-packages" not in file.parts


def _left_out(frames: list[str]) -> str:
    packages = [found["name"] for frame in frames if (found := _PACKAGE.search(_ANSI.sub("", frame)))]
    names = list(dict.fromkeys(packages)) or ["Python itself"]
    whose = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    count = "1 frame" if len(frames) == 1 else f"{len(frames)} frames"
    return f"    [... {count} inside {whose}, not shown on this page ...]\n"
