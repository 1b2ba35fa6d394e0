"""The results of a class: what is in the `attempts/progress.json` of several learners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from bugs.zoo.keeper.export import RESULTS
from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.learner.arguments import Refused
from bugs.zoo.learner.attempts import FOLDER
from bugs.zoo.learner.progress import NAME, SURPRISE, ProgressStore


def results(folders: Iterable[Path], exhibits: Mapping[str, Exhibit]) -> list[dict[str, object]]:
    """Return a row for everything that each learner has begun.

    Args:
        folders: the learners' `attempts` folders, or folders with a subfolder for each learner.
        exhibits: the catalogue, for the titles.

    Raises:
        Refused: a folder holds no progress of any learner.
    """
    rows = []
    for folder in folders:
        found = sorted({*folder.glob(NAME), *folder.glob(f"*/{NAME}"), *folder.glob(f"*/{FOLDER}/{NAME}")})
        if not found:
            raise Refused(
                f"no {NAME} in {folder}: expected an {FOLDER} folder, or a folder with one for each learner"
            )
        for file in found:
            rows += _of_learner(file.parent, exhibits)
    return rows


def _of_learner(attempts: Path, exhibits: Mapping[str, Exhibit]) -> list[dict[str, object]]:
    whole = attempts.resolve()
    learner = whole.parent.name if whole.name == FOLDER else whole.name
    rows = []
    for word, cage in sorted(ProgressStore(attempts).read().cages.items()):
        is_exhibit = word in exhibits
        kind = "exhibit" if is_exhibit or word == SURPRISE else word.partition("-")[0]
        state = "passed" if cage.repaired else "begun" if cage.begun else "new"
        cells = (
            learner,
            word,
            kind,
            exhibits[word].title if is_exhibit else "",
            state,
            cage.repaired,
            cage.reserved,
            "" if cage.repaired else cage.wrong,
            cage.checks,
            cage.hints,
            cage.solution_seen,
            cage.begun,
        )
        rows.append(dict(zip(RESULTS, cells, strict=True)))
    return rows
