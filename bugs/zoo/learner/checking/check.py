"""Checks a learner's version of a script: runs it as a verification runs an exhibit, and evaluates its model."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from bugs.zoo.keeper.child import Ending, Sink, keep_quiet, run_child
from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.keeper.outcome import judge
from bugs.zoo.keeper.verification import PATIENCE, alarms, environment_of, read_report
from bugs.zoo.learner.checking.evidence import Evidence, judgements, reservations
from bugs.zoo.learner.checking.exchange import FACTS, PRINTED, REPORT, RESULT
from bugs.zoo.learner.checking.result import Check

THREADS = 2  # more of them make no script of the zoo faster
EXAM_S = 300  # seconds for the imports and one evaluation, on a busy machine
OWN = {"ZOO_MODEL": "", "ZOO_DATASET": ""}  # a check is about the zoo's model and data


def check(
    exhibit: Exhibit,
    script: Path,
    *,
    to_output: Sink = keep_quiet,
    on_exam: Callable[[], object] = lambda: None,
) -> Check:
    """Run a learner's version of an exhibit's script, with seed 0, and judge it.

    Args:
        exhibit: the cage.
        script: the learner's version of its script.
        to_output: takes what the script writes, as it comes.
        on_exam: called when the script has ended and its model is about to be evaluated.
    """
    before = _fingerprints(exhibit.root)
    with tempfile.TemporaryDirectory(prefix="bug-zoo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        copy = folder / "train.py"  # what is examined is what was run, whatever is saved meanwhile
        shutil.copyfile(script, copy)
        text = copy.read_text("utf-8", errors="replace")
        with Exam(exhibit, copy, folder) as exam:
            seen = witnessed(exhibit, script, text, folder, to_output)
            ending = seen.outcome.ending
            ended_well = (ending.how, ending.returncode) == ("exited", 0)
            if seen.facts is not None and seen.facts["has_model"] and ended_well:
                on_exam()
                (folder / PRINTED).write_text(json.dumps(seen.outcome.metrics), "utf-8")
                seen = replace(seen, exam=exam.result())
        seen = replace(seen, changed=sorted(_changed(before, _fingerprints(exhibit.root))))
    return Check(
        "exhibit",
        exhibit.id,
        tuple(judgements(exhibit, seen)),
        tuple(reservations(exhibit, seen)),
        tuple(alarms(seen.report)),
        seen.outcome.metrics,
        seen.outcome.ending.seconds,
    )


def few_threads() -> dict[str, str]:
    """Return the variables that keep a small model from waiting for its own threads; the user's count wins."""
    threads = os.environ.get("OMP_NUM_THREADS") or str(min(THREADS, os.cpu_count() or 1))
    return {"OMP_NUM_THREADS": threads, "TF_NUM_INTRAOP_THREADS": threads, "TF_NUM_INTEROP_THREADS": "1"}


def witnessed(exhibit: Exhibit, script: Path, text: str, folder: Path, to_output: Sink = keep_quiet) -> Evidence:
    """Run a script of this text as a verification does, with the witness in its process.

    The witness leaves its files in the folder.
    """
    patient = replace(exhibit, budget_s=exhibit.budget_s * PATIENCE)
    ending = run_child(
        [
            "-m",
            "bugs.zoo.learner.checking.witness",
            str(folder),
            str(exhibit.root / "solutions"),
            str(script.resolve()),
        ],
        budget_s=patient.budget_s,
        budget_mb=patient.budget_mb,
        to_stdout=to_output,
        to_stderr=to_output,
        environment=environment_of(exhibit, 0, jobs=1) | few_threads() | OWN,
    )
    outcome = judge(patient, script, ending)
    return Evidence(text, outcome, read_report(folder / REPORT), _read(folder / FACTS))


class Exam:
    """The evaluation of a learner's model, in a process that prepares it while the script still trains.

    A script that is to run out of memory has it for itself: its exam begins when it has ended.

    Args:
        exhibit: whose script it is.
        script: the learner's version.
        folder: where the witness leaves the model.
    """

    def __init__(self, exhibit: Exhibit, script: Path, folder: Path) -> None:
        self._exhibit, self._script, self._folder = exhibit, script, folder
        self._stop, self._pool = threading.Event(), ThreadPoolExecutor(1)
        # The word to begin is given where the script does not see it.
        self._apart = tempfile.TemporaryDirectory(prefix="bug-zoo-", ignore_cleanup_errors=True)
        self._begin = Path(self._apart.name) / "begin"
        self._ending: Future[Ending] | None = None

    def __enter__(self) -> Exam:
        if self._exhibit.symptom != "exhausts" and (os.cpu_count() or 1) > 1:
            self._ending = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        self._apart.cleanup()

    def result(self) -> Mapping[str, Any]:
        """Evaluate the model that is in the folder by now."""
        self._begin.touch()
        ending = (self._ending or self._pool.submit(self._run)).result()
        result = _read(self._folder / RESULT)
        if result is None:
            last = (ending.stderr.strip().splitlines() or ["it said nothing"])[-1]
            result = {"metrics": {}, "problem": f"its evaluation failed ({last})", "on_trained": 0.0}
        return result

    def _run(self) -> Ending:
        exhibit = self._exhibit
        own = [] if exhibit.exam is None else [str(exhibit.exam)]
        places = (self._folder, self._begin, exhibit.solution, self._script)
        return run_child(
            ["-m", "bugs.zoo.learner.checking.exam", *map(str, places), *own],
            budget_s=(EXAM_S + exhibit.budget_s) * PATIENCE,
            budget_mb=exhibit.budget_mb,
            to_stdout=keep_quiet,
            to_stderr=keep_quiet,
            environment=environment_of(exhibit, 0, jobs=1) | few_threads() | OWN,
            stop=self._stop,
        )


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _fingerprints(root: Path) -> dict[str, str]:
    """Hash what a check stands on: keeper, learner, lab, library, and the cages with their solutions."""
    found = {}
    here = Path(__file__).resolve().parents[4]
    places = [here / "bugs", here / "diagnostics", root / "bugs", root / "solutions"]
    for place in dict.fromkeys(places):
        for folder, folders, files in os.walk(place):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in files:
                if name.endswith((".py", ".toml")):
                    path = os.path.join(folder, name)
                    with open(path, "rb") as file:
                        found[path] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
