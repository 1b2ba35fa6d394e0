"""Checks every cage in both directions: the broken script fails as declared, its solution recovers.

Both run by `diagnose run`, which must name the declared rules on the one and find nothing on the other.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bugs.zoo.keeper import verified
from bugs.zoo.keeper.child import environment_in, keep_quiet, run_child, watch_fork
from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.keeper.outcome import Outcome, judge
from bugs.zoo.keeper.warm import WarmProcesses, kind_of

# An exhibit's seconds are for its script alone on the machine; here it has neighbours and is examined, too.
PATIENCE = 4
WAKES_S = 1.0


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
    """Run both twins of every exhibit with the seeds 0 to `seeds` - 1, `jobs` at a time.

    `on_start` and `on_end` are called from the threads that the trials run in. Ctrl-C ends every child.

    Returns:
        The trials in the order of the exhibits, of each seed the broken one first.
    """
    stop = threading.Event()
    of_thread, started = threading.local(), contextlib.ExitStack()

    def start() -> None:
        of_thread.warm = started.enter_context(contextlib.closing(WarmProcesses()))

    def attempt(exhibit: Exhibit, seed: int, solution: bool) -> Trial:
        on_start(exhibit, seed, solution)
        trial = _attempt(exhibit, seed, solution, jobs, stop, of_thread.warm)
        on_end(trial)
        return trial

    trials = list(itertools.product(exhibits, range(seeds), (False, True)))
    with started, ThreadPoolExecutor(jobs, initializer=start) as pool:
        try:  # from the first script on, which may be seen, and interrupted, before the last is handed in
            # The longest first: one that began last would run alone.
            waiting: dict[int, Future[Trial]] = {
                place: pool.submit(attempt, *trials[place])
                for place in sorted(range(len(trials)), key=lambda place: -trials[place][0].budget_s)
            }
            left = set(waiting.values())
            while left:  # with a limit: a Ctrl-C just before the wait begins does not end one without
                ended, left = wait(left, timeout=WAKES_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [waiting[place].result() for place in range(len(trials))]


def _attempt(
    exhibit: Exhibit, seed: int, solution: bool, jobs: int, stop: threading.Event, warm: WarmProcesses
) -> Trial:
    script = exhibit.solution if solution else exhibit.script
    environment = environment_of(exhibit, seed, jobs)
    patient = replace(exhibit, budget_s=exhibit.budget_s * PATIENCE)
    with tempfile.TemporaryDirectory(prefix="bug-zoo-") as folder:
        output = Path(folder) / "report.json"
        command = ["run", "--output", str(output), "--fail-on", "never", "--quiet", str(script.resolve())]
        if kind := _kind(exhibit, script, environment):
            with (
                tempfile.TemporaryDirectory(prefix="bug-zoo-", ignore_cleanup_errors=True) as work,
                warm.start(kind, command, Path(work), **environment_in(work) | environment) as fork,
            ):
                ending = watch_fork(fork, budget_s=patient.budget_s, budget_mb=patient.budget_mb, stop=stop)
        else:
            ending = run_child(
                ["-m", "diagnostics", *command],
                budget_s=patient.budget_s,
                budget_mb=patient.budget_mb,
                to_stdout=keep_quiet,
                to_stderr=keep_quiet,
                environment=environment,
                stop=stop,
            )
        reported, report = output.exists(), read_report(output)
    outcome = judge(patient, script, ending)
    problems = [] if outcome.ok else [f"{outcome.verdict}: {outcome.reason}"]
    if outcome.ok and not reported:
        problems.append(f"no report was written; the last line was: {_last_line(ending.stderr)}")
    problems += [f"diagnostics itself failed: {fault.splitlines()[-1]}" for fault in report["faults"]]
    problems += _on_solution(report) if solution else _on_broken(exhibit, report)
    # As a reader runs it. A script that exhausts its memory does so elsewhere beside an observer.
    if not problems and seed == 0 and (solution or exhibit.symptom != "exhausts"):
        lines = ending.stderr.splitlines(keepends=True)
        own = "".join(line for line in lines if not line.startswith("diagnose: "))  # not where the report is
        said = verified.Said(ending.returncode, ending.stdout, own)
        verified.keep(exhibit, script, os.environ | environment, said)
    return Trial(exhibit, seed, solution, outcome, tuple(alarms(report)), tuple(problems), tuple(report["faults"]))


def _kind(exhibit: Exhibit, script: Path, environment: Mapping[str, str]) -> str | None:
    """Return the kind of warm process whose fork runs the script; None if it needs an interpreter of its own.

    A script that is meant to run out of memory needs one, because a fork starts with more memory in use. So does a
    script with several threads.
    """
    threads = (os.environ | environment)["OMP_NUM_THREADS"]
    if sys.platform != "linux" or threads != "1" or exhibit.symptom == "exhausts":
        return None
    return kind_of(script.read_text("utf-8"))


def _on_broken(exhibit: Exhibit, report: Mapping[str, Any]) -> list[str]:
    """The first finding is a declared one, and all that are declared are told."""
    problems = []
    declared = " or ".join(exhibit.rules)
    told = _rules(report["findings"])
    if told and told[0] not in exhibit.rules:
        problems.append(f"expected {declared} first, got {told[0]}")
    if exhibit.symptom == "throws" and report["crash"] is None and not report["faults"]:
        problems.append(f"expected {declared} in the exception, but there was none to explain")
    if missed := [rule for rule in exhibit.rules if rule not in told]:
        problems.append(f"not reported: {', '.join(missed)}")
    return problems


def _on_solution(report: Mapping[str, Any]) -> list[str]:
    """Nothing is found that is worth a warning."""
    told = alarms(report)
    return [f"false alarm on the solution: {', '.join(told)}"] if told else []


def environment_of(exhibit: Exhibit, seed: int, jobs: int) -> dict[str, str]:
    """Return the variables with which a script is verified, beside those of this process."""
    environment = {"ZOO_SEED": str(seed)}
    if "OMP_NUM_THREADS" not in os.environ:  # neighbours that all want every core hold each other up
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // jobs))
    if exhibit.symptom == "exhausts":  # it fails twice here, and oneDNN's kernels can crash at the second
        environment["TF_ENABLE_ONEDNN_OPTS"] = "0"
    return environment


def alarms(report: Mapping[str, Any]) -> list[str]:
    """List the rules that a report names in errors and warnings."""
    return _rules(finding for finding in report["findings"] if finding["severity"] in ("error", "warning"))


def notes(report: Mapping[str, Any]) -> list[str]:
    """List the rules that a report names in notes."""
    return list(dict.fromkeys(_rules(f for f in report["findings"] if f["severity"] == "note")))


def _rules(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """List rules in the order of the report, those of consequences right after their cause's."""
    return [rule for finding in findings for rule in (finding["rule"], *_rules(finding["consequences"]))]


def _last_line(text: str) -> str:
    return next(reversed(text.split("\n")[:-1]), "")


def read_report(file: Path) -> Mapping[str, Any]:
    """Read the report; without findings if the script was ended before there was one."""
    if not file.exists():
        return {"findings": [], "crash": None, "faults": []}
    report: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return report
