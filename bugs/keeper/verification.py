"""Checks every cage in both directions: the broken script fails as declared, its solution recovers.

Both run under the eyes of `diagnostics` (see `observed.py`), which must name the declared rules on the one
and find nothing on the other.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bugs.keeper.child import keep_quiet, run_child
from bugs.keeper.manifest import Exhibit
from bugs.keeper.observed import Observation
from bugs.keeper.outcome import Outcome, judge

# An exhibit's seconds are for its script alone on the machine; here it has neighbours and is examined, too.
PATIENCE = 4


@dataclass(frozen=True)
class Trial:
    """One script, run once with one seed under the library's eyes."""

    exhibit: Exhibit
    seed: int
    solution: bool
    outcome: Outcome
    rules: tuple[str, ...]  # that the library reported as errors or warnings, first things first
    problems: tuple[str, ...]  # what is not as declared; empty if all is well
    faults: tuple[str, ...]  # tracebacks of the library itself

    @property
    def ok(self) -> bool:
        """Whether all was as declared."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as plain JSON values."""
        mine = {"seed": self.seed, "rules": list(self.rules), "problems": list(self.problems), "ok": self.ok}
        return self.outcome.to_dict() | mine | {"faults": list(self.faults)}


def verify(
    exhibits: Sequence[Exhibit],
    seeds: int,
    jobs: int,
    on_start: Callable[[Exhibit, int, bool], object],
    on_end: Callable[[Trial], object],
) -> list[Trial]:
    """Run both twins of every exhibit with the seeds 0 to `seeds` - 1, `jobs` at a time; broken ones first.

    `on_start` and `on_end` are called from the threads that the trials run in. Ctrl-C ends every child.
    """
    stop = threading.Event()

    def attempt(exhibit: Exhibit, seed: int, solution: bool) -> Trial:
        on_start(exhibit, seed, solution)
        trial = _attempt(exhibit, seed, solution, jobs, stop)
        on_end(trial)
        return trial

    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[Future[Trial]] = [
            pool.submit(attempt, exhibit, seed, solution)
            for exhibit in exhibits
            for seed in range(seeds)
            for solution in (False, True)
        ]
        try:
            for future in as_completed(waiting):
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in waiting]


def _attempt(exhibit: Exhibit, seed: int, solution: bool, jobs: int, stop: threading.Event) -> Trial:
    script = exhibit.solution if solution else exhibit.script
    environment = {"ZOO_SEED": str(seed)}
    if "OMP_NUM_THREADS" not in os.environ:  # neighbours that all want every core hold each other up
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // jobs))
    if exhibit.symptom == "exhausts":  # it fails twice here, and oneDNN's kernels can crash at the second
        environment["TF_ENABLE_ONEDNN_OPTS"] = "0"
    patient = replace(exhibit, budget_s=exhibit.budget_s * PATIENCE)
    with tempfile.TemporaryDirectory(prefix="bug-zoo-") as folder:
        report = Path(folder) / "observation.json"
        ending = run_child(
            ["-m", "bugs.keeper.observed", str(script.resolve()), "--report", str(report)],
            budget_s=patient.budget_s,
            budget_mb=patient.budget_mb,
            to_stdout=keep_quiet,
            to_stderr=keep_quiet,
            environment=environment,
            stop=stop,
        )
        observation = Observation.load(report)
    outcome = judge(patient, script, ending)
    rules = tuple(dict.fromkeys(_alarms(observation)))
    problems = [] if outcome.ok else [f"{outcome.verdict}: {outcome.reason}"]
    problems += [f"diagnostics itself failed: {fault.splitlines()[-1]}" for fault in observation.faults]
    problems += _on_solution(observation) if solution else _on_broken(exhibit, observation)
    return Trial(exhibit, seed, solution, outcome, rules, tuple(problems), tuple(observation.faults))


def _on_broken(exhibit: Exhibit, observation: Observation) -> list[str]:
    """Every declared rule is reported, and a declared one comes first, whoever reports.

    A watch may have nothing to report of a run that came to its end too early.
    """
    problems = []
    declared = " or ".join(exhibit.rules)
    reports = [("examine", report) for report in observation.examined]
    reports += [("watch", report) for report in observation.watched if report["findings"]]
    if observation.explained is not None:
        reports.append(("explain", observation.explained))
    for name, report in reports:
        first = next(iter(_rules(report)), None)
        if first not in exhibit.rules:
            problems.append(f"{name}: expected {declared} first, got {first or 'no finding'}")
    if exhibit.symptom == "throws" and observation.explained is None and not observation.faults:
        problems.append(f"explain: expected {declared}, but there was nothing to explain")
    reported = {rule for _, report in reports for rule in _rules(report)}
    if missed := [rule for rule in exhibit.rules if rule not in reported]:
        problems.append(f"not reported: {', '.join(missed)}")
    return problems


def _on_solution(observation: Observation) -> list[str]:
    """Nobody finds anything worth a warning."""
    alarms = list(dict.fromkeys(_alarms(observation)))
    return [f"false alarm on the solution: {', '.join(alarms)}"] if alarms else []


def _alarms(observation: Observation) -> list[str]:
    explained = [observation.explained] if observation.explained else []
    return [
        finding["rule"]
        for report in observation.examined + observation.watched + explained
        for finding in report["findings"]
        if finding["severity"] in ("error", "warning")
    ]


def _rules(report: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in report["findings"]]
