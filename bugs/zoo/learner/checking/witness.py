"""Runs a learner's script under `diagnose run`, and writes down what it really did, for the check to judge.

`python -m bugs.zoo.learner.checking.witness FOLDER SOLUTIONS SCRIPT` leaves three files in FOLDER: `report.json`
of `diagnose run`, `facts.json`, and `model.npz` with the weights of the trained model and the digests of its rows.
Where the script spawns ranks, the facts are theirs. What is judged, and by what measure, is decided in another
process.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bugs.zoo.learner.checking.exchange import FACTS, MODEL, REPORT
from bugs.zoo.learner.checking.observation import Observation
from bugs.zoo.learner.checking.ranks import RankObservations
from bugs.zoo.learner.checking.tampering import SolutionReads, replaced
from diagnostics.cli.main import main as diagnose


def main(arguments: list[str]) -> int:
    """Run the script, write what it did, and return its exit code."""
    folder, solutions, script = Path(arguments[0]), Path(arguments[1]), Path(arguments[2])
    observation, reads = Observation(), SolutionReads(solutions)
    dumps, save = json.dumps, np.savez
    ranks = RankObservations(folder, solutions, script)
    observation.begin()
    code = diagnose(["run", "--output", str(folder / REPORT), "--fail-on", "never", "--quiet", str(script)])
    reads.active = False
    lift_memory_limit()
    tampered = replaced(script)  # before our own replacements are undone, which are of other files
    observation.end()
    weights = observation.weights()
    facts: dict[str, Any] = {
        "updates": observation.updates,
        "models": observation.models,
        "rows": len(observation.trained.digests),
        "examples": observation.trained.count,
        "evaluated": len(observation.evaluated.digests),
        "evaluated_on_trained": observation.evaluated.share_in(observation.trained.digests),
        "whole": observation.whole,
        "has_model": weights is not None,
        "replaced": tampered,
        "solutions": sorted(reads.seen),
    }
    arrays: dict[str, Any] = {f"weight {name}": value for name, value in (weights or {}).items()}
    arrays["trained"] = observation.trained.to_array()
    if (of_ranks := ranks.close()) is not None:
        told = {name: sorted({*facts[name], *of_ranks[0][name]}) for name in ("replaced", "solutions")}
        facts, arrays = of_ranks[0] | told, of_ranks[1]
    save(folder / MODEL, **arrays)
    (folder / FACTS).write_text(dumps(facts), "utf-8")
    return code


def lift_memory_limit() -> None:
    """Give back what `lab.memory_budget` has taken, so that there is room to write."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
