"""Prints the table `[effort]` for manifests: `python -m bugs.zoo.learner.checking.effort [ID ...]`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bugs.zoo.keeper.catalogue import find, load_catalogue
from bugs.zoo.keeper.manifest import Effort, Exhibit
from bugs.zoo.keeper.verification import notes
from bugs.zoo.learner.checking.check import witnessed

ROOT = Path(__file__).resolve().parents[4]


def effort_of(exhibit: Exhibit) -> Effort:
    """Run an exhibit's solution, and return what its training amounts to.

    Raises:
        RuntimeError: it failed; the message holds the end of what it said.
    """
    with tempfile.TemporaryDirectory(prefix="bug-zoo-") as folder:
        text = exhibit.solution.read_text("utf-8")
        seen = witnessed(exhibit, exhibit.solution, text, Path(folder))
    if seen.facts is None or seen.outcome.verdict != "recovered":
        raise RuntimeError(f"cage {exhibit.id}: {seen.outcome.reason}\n{seen.outcome.ending.stderr[-2000:]}")
    judged = [rule for rule in exhibit.rules if rule not in seen.report["not_applicable"]]
    rows = seen.facts["rows"] if seen.facts["whole"] else seen.facts["examples"]
    return Effort(seen.facts["updates"], rows, tuple(judged), seen.facts["models"], tuple(notes(seen.report)))


def main(arguments: list[str]) -> int:
    """Print one table for each exhibit, and return 0."""
    exhibits = load_catalogue(ROOT)
    for exhibit in [find(exhibits, name) for name in arguments] or exhibits.values():
        effort = effort_of(exhibit)
        print(f"# bugs/{exhibit.folder}/exhibit.toml\n[effort]\nupdates = {effort.updates}\nrows = {effort.rows}")
        print(f"judged = {json.dumps(effort.judged)}")
        if effort.models > 1:
            print(f"models = {effort.models}")
        if effort.notes:
            print(f"notes = {json.dumps(effort.notes)}")
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
