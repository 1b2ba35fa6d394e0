"""All the cages: found in `bugs/`, checked, and looked up by whatever name a person types.

Standard library only, as `manifest.py` says.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from bugs.zoo.keeper.manifest import (
    CatalogueError,
    Condition,
    ExceptionSignature,
    Exhibit,
    MetricSignature,
    Recovery,
    check_cause,
    read_exhibit,
)

__all__ = [
    "CatalogueError",
    "Condition",
    "ExceptionSignature",
    "Exhibit",
    "MetricSignature",
    "Recovery",
    "UnknownExhibit",
    "find",
    "load_catalogue",
    "reasons_without_exhibit",
    "survey",
]


class UnknownExhibit(LookupError):
    """No exhibit has the name that was asked for. `str()` is one line, with the near names in it."""


def load_catalogue(root: Path) -> dict[str, Exhibit]:
    """Return every exhibit under `root/bugs`, by id, in the order of the ids.

    Raises:
        CatalogueError: for the first manifest that is broken, or whose cause does not stand in `train.py`.
    """
    exhibits, broken = survey(root)
    if broken:
        raise broken[0]
    for exhibit in exhibits.values():
        check_cause(exhibit)
    return exhibits


def reasons_without_exhibit(root: Path) -> dict[str, str]:
    """Say of each rule that no exhibit shows why none does, from `root/bugs/rules_without_exhibit.toml`."""
    return tomllib.loads((root / "bugs" / "rules_without_exhibit.toml").read_text(encoding="utf-8"))


def survey(root: Path) -> tuple[dict[str, Exhibit], list[CatalogueError]]:
    """Return the exhibits that can be used, as `load_catalogue` does, and what is wrong with the others.

    Nothing is said of a script that lost its declared cause: its reader is repairing it.
    """
    exhibits: dict[str, Exhibit] = {}
    broken: list[CatalogueError] = []
    for folder in _folders(root):
        try:
            exhibit = read_exhibit(root, folder)
            if (other := exhibits.get(exhibit.id)) is not None:
                problem = f"id: {exhibit.id!r} is already taken by bugs/{other.folder}"
                raise CatalogueError(folder, "exhibit.toml", problem)
            exhibits[exhibit.id] = exhibit
        except CatalogueError as error:
            broken.append(error)
    return exhibits, broken


def find(catalogue: Mapping[str, Exhibit], name: str) -> Exhibit:
    """Return the exhibit called `name`: "4", "04", "bug-04", "fix-04", "04_wrong_label_count", or its path.

    Raises:
        UnknownExhibit: if there is none; its message names the nearest.
    """
    for part in reversed(re.split(r"[\\/]", name.strip().lower())):
        number = re.fullmatch(r"(?:bug-|fix-)?(\d{1,2})(?:_\w+)?", part)
        exhibit = catalogue.get(number[1].zfill(2)) if number else None
        if exhibit is not None and ("_" not in part or part == exhibit.folder):
            return exhibit
    raise UnknownExhibit(f"no exhibit is called {name!r}; {_nearest(catalogue, name)}")


def _nearest(catalogue: Mapping[str, Exhibit], name: str) -> str:
    names = {
        word.lower(): exhibit
        for exhibit in catalogue.values()
        for word in (exhibit.id, f"bug-{exhibit.id}", exhibit.folder, exhibit.folder[3:], exhibit.title)
    }
    close = difflib.get_close_matches(name.strip().lower(), names, n=6, cutoff=0.55)
    near = list(dict.fromkeys(names[word].folder for word in close))[:3]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(catalogue)}" if catalogue else "the zoo is empty"


def _folders(root: Path) -> list[str]:
    return sorted(
        folder.name
        for folder in (root / "bugs").glob("[0-9][0-9]_*")
        # What git leaves behind after a change of branch (caches, outputs) is no exhibit.
        if (folder / "exhibit.toml").exists() or (folder / "train.py").exists()
    )
