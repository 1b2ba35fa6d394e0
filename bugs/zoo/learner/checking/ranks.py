"""Sees what the ranks do that a learner's script spawns: each in its own process, put together afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import numpy as np

from bugs.zoo.learner.checking.observation import Observation
from bugs.zoo.learner.checking.tampering import SolutionReads, replaced
from diagnostics.run.ranks.spawn_hook import SpawnHook

LAST = -2_000  # at the end of a process: after the report of `diagnose run`


@dataclass(frozen=True)
class Place:
    """What the ranks of one launch are told.

    Attributes:
        stem: of the files that they leave, without the number of the rank.
        solutions: the folder of our solutions.
        script: the learner's.
    """

    stem: str
    solutions: Path
    script: Path


class RankObservations:
    """Observes the ranks that a script spawns from its creation on."""

    def __init__(self, folder: Path, solutions: Path, script: Path) -> None:
        """Begin.

        Args:
            folder: for the files that the ranks leave.
            solutions: the folder of our solutions.
            script: the learner's.
        """
        self._folder, self._solutions, self._script = folder, solutions, script
        self._launches = 0
        self._hook = SpawnHook(self._launched, begin)

    def _launched(self, world: int) -> Place:
        self._launches += 1
        return Place(str(self._folder / f"launch{self._launches}-rank"), self._solutions, self._script)

    def close(self) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]] | None:
        """Observe no more, and return facts and arrays as `witness` writes them; None if no rank has left any.

        Updates and models are those of one rank, of all launches. Rows are those of all ranks, weights those of
        rank 0 in the last launch.
        """
        self._hook.close()
        facts: dict[str, Any] = {"updates": 0, "models": 0, "examples": 0, "whole": True, "has_model": False}
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        told: dict[str, set[str]] = {"replaced": set(), "solutions": set()}
        rows: dict[str, set[int]] = {"trained": set(), "evaluated": set()}
        for launch in range(1, self._launches + 1):
            files = sorted(self._folder.glob(f"launch{launch}-rank*.json"))
            ranks = [json.loads(file.read_text("utf-8")) for file in files]
            for name in ("updates", "models"):
                facts[name] += max((rank[name] for rank in ranks), default=0)
            facts["examples"] += sum(rank["examples"] for rank in ranks)
            facts["whole"] &= all(rank["whole"] for rank in ranks)
            for name, found in told.items():
                found.update(one for rank in ranks for one in rank[name])
            for file in files:
                with np.load(file.with_suffix(".npz")) as saved:
                    for name, digests in rows.items():
                        digests.update(saved[name].tolist())
                    weights = {name: saved[name] for name in saved.files if name.startswith("weight ")}
                arrays = weights if file.stem.endswith("rank0") and weights else arrays
        if not any(self._folder.glob("launch*-rank*.json")):
            return None
        facts["has_model"] = bool(arrays)
        facts |= {name: sorted(found) for name, found in told.items()}
        facts |= {"rows": len(rows["trained"]), "evaluated": len(rows["evaluated"])}
        facts["evaluated_on_trained"] = len(rows["evaluated"] & rows["trained"]) / max(1, len(rows["evaluated"]))
        return facts, arrays | {"trained": np.array(sorted(rows["trained"]), dtype=np.uint64)}


def begin(number: int, place: Place) -> None:
    """Observe this process as a rank until its end."""
    observation, reads = Observation(), SolutionReads(place.solutions)
    observation.begin()
    Finalize(None, _end, (number, place, observation, reads, json.dumps, np.savez), exitpriority=LAST)


def _end(number: int, place: Place, observation: Observation, reads: SolutionReads, dumps: Any, save: Any) -> None:
    reads.active = False
    tampered = replaced(place.script)  # before our own replacements are undone, which are of other files
    observation.end()
    weights = observation.weights() if number == 0 else None
    named = {f"weight {name}": value for name, value in (weights or {}).items()}
    trained, evaluated = observation.trained, observation.evaluated
    save(f"{place.stem}{number}.npz", trained=trained.to_array(), evaluated=evaluated.to_array(), **named)
    facts = {
        "updates": observation.updates,
        "models": observation.models,
        "examples": trained.count,
        "whole": observation.whole,
        "replaced": tampered,
        "solutions": sorted(reads.seen),
    }
    Path(f"{place.stem}{number}.json").write_text(dumps(facts), "utf-8")
