"""An executed notebook as readers get it: on the page, and as a download."""

from __future__ import annotations

import copy
import re
from pathlib import Path

from nbformat import NotebookNode

from book.panels import CURVE
from bugs.lab.cache import root

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"File (?P<file>.+?):\d+")
_BAR = re.compile(r"\d+%\|")  # tqdm's: it holds the seconds that a step took
# What tqdm and rich say where Jupyter's widgets are missing, and what they show where they are not.
_NO_WIDGETS = re.compile(r"Warning: .*(ipywidgets|IProgress)")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_HIDDEN = {_WIDGET, CURVE}
_PACKAGE = re.compile(r"site-packages/(?P<name>\w+)")


def fair_copy(notebook: NotebookNode, zoo: Path) -> NotebookNode:
    """Return a copy with short tracebacks, short paths, and nothing of the machine that ran it.

    Progress bars are left out, as text and as widgets, warnings that there are no widgets, and what was noted for
    the build.

    Args:
        notebook: as it was executed.
        zoo: the repository's root; paths under it are shown from there, and those of installed packages from
            the package's name.
    """
    fair = copy.deepcopy(notebook)
    for key in ("papermill", "widgets", "mystery"):
        fair.metadata.pop(key, None)
    for cell in fair.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.metadata.tags.append("remove-cell")
            cell.metadata["jupyter"] = {"source_hidden": True}
        if "outputs" in cell:
            for output in cell.outputs:
                _tidy(output, zoo)
            cell.outputs = [output for output in cell.outputs if not _is_empty(output)]
    return fair


def _tidy(output: NotebookNode, zoo: Path) -> None:
    if output.output_type == "error":
        output.traceback = [short_paths(part, zoo) for part in shorten(output.traceback, zoo)]
    elif output.output_type == "stream":
        output.text = short_paths(_without_progress(output.text), zoo)
    else:
        for kind in ("text/plain", "text/html", "text/markdown"):
            if kind in output.data:
                output.data[kind] = short_paths(output.data[kind], zoo)


def _is_empty(output: NotebookNode) -> bool:
    return not output.text if output.output_type == "stream" else not _HIDDEN.isdisjoint(output.get("data", {}))


def _without_progress(text: str) -> str:
    """Leave out progress bars, and the two lines of a warning that a notebook cannot show them as widgets."""
    kept: list[str] = []
    lines = iter(re.split(r"(?<=\n)", text))  # a carriage return ends no line
    for line in lines:
        if _NO_WIDGETS.search(line):
            next(lines, None)  # the source line that Python quotes under it
        elif not _BAR.search(line):
            kept.append(line)
        elif drawn_over := [part for part in line.split("\r") if part.strip() and not _BAR.search(part)]:
            kept.append(drawn_over[-1].removesuffix("\n") + "\n")
    return "".join(kept)


def short_paths(text: str, zoo: Path) -> str:
    """Show the zoo's files from its root, installed packages from their names, and nobody's home or cache."""
    text = re.sub(r"/[^\s'\"<>:]*/site-packages/", "", text)  # first: the zoo's environment lies inside the zoo
    text = text.replace(str(root()), "~/.cache/bug-zoo")
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
