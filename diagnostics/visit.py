"""One run of a script under `diagnose run`, from its start to the report."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .limits import Limits
from .merging import TrainingReports, merged
from .report import Report, StageResult
from .running import Run
from .script import Ending, Script
from .second_run import run_again

FAIL_ON = ("error", "warning", "never")
FOUND = 1
PATIENCE_S, SLOWER = 60, 10  # a run on the CPU is given a minute, and ten times what the first took
NOTHING_TRAINED = StageResult(
    "training",
    "not judged",
    "none was seen: no Trainer.train, no Keras fit, and no PyTorch optimizer that stepped with a model",
)


@dataclass(frozen=True)
class Wishes:
    """What is asked of a visit.

    Attributes:
        kind: of the report: ``text``, ``json`` or ``html``.
        output: the file for the report; None for standard error.
        fail_on: the least severity of a finding that makes the exit code 1, ``error`` or ``warning``; ``never``.
        ignores: by rule that shall say nothing, why.
        max_steps: optimizer steps after which the script is stopped; None for no limit.
        time_limit: seconds after which it is stopped; None for no limit.
        replay_on_cpu: whether it is run once more on the CPU if a GPU fails.
        first_batches: a file with the batches that its first loader gives first; None for the loader's own.
        quiet: whether to print no report if there is nothing to fail on.
    """

    kind: str
    output: Path | None
    fail_on: str
    ignores: dict[str, str]
    max_steps: int | None
    time_limit: float | None
    replay_on_cpu: bool
    first_batches: Path | None
    quiet: bool


class Visit:
    """One script, from its start to the report."""

    def __init__(self, script: Script, wishes: Wishes) -> None:
        """Prepare; nothing is run yet."""
        self._script, self._wishes = script, wishes
        self._limits = Limits(wishes.max_steps, wishes.time_limit)
        self._process, self._folder = os.getpid(), str(Path.cwd())
        self._started = time.monotonic()
        self._told = self._left = False

    def make(self) -> int:
        """Run the script, tell what was seen, and return the exit code."""
        self._run = Run(keep_batches=self._wishes.replay_on_cpu, first_batches=self._wishes.first_batches)
        self._await_termination()
        with self._limits:
            ending = self._script.run(self._limits.was_reached)
        if ending.forked:  # a child of the script's that came to its end; the report is its parent's business
            return ending.exit_code
        self._leave_termination_alone()
        report = self._report(ending)
        self._tell(report)
        return ending.exit_code or (FOUND if self._fails(report) else 0)

    def _await_termination(self) -> None:
        """Tell what was seen also when somebody ends the script by SIGTERM, unless it sees to that by itself."""
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        signal.signal(signal.SIGTERM, self._terminated)
        if hasattr(os, "register_at_fork"):
            # A child must end by it as ever. Between fork and its first line no handler in Python is called.
            os.register_at_fork(before=self._leave_termination_alone, after_in_parent=self._take_it_up)

    def _leave_termination_alone(self) -> None:
        self._left = signal.getsignal(signal.SIGTERM) == self._terminated
        if self._left and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _take_it_up(self) -> None:
        if self._left and threading.current_thread() is threading.main_thread() and not self._told:
            signal.signal(signal.SIGTERM, self._terminated)

    def _terminated(self, number: int, _frame: Any) -> None:
        """Tell what was seen, and end as the signal would have ended it."""
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() == self._process and not self._told:
            self._tell(self._report(Ending(128 + number)))
        os.kill(os.getpid(), number)

    def _report(self, ending: Ending) -> Report:
        self._run.close()
        trainings = [TrainingReports(t.examined, self._run.course(t)) for t in self._run.trainings]
        explained, faults = None, list(self._run.faults)
        if ending.error is not None and ending.error.__traceback__ is not None:
            from .explanation import explain

            try:
                explained = explain(ending.error)
            except Exception as fault:  # ours, and no reason to say nothing at all
                faults.append(f"explaining the exception failed: {type(fault).__name__}: {fault}")
        report = merged(self._title(ending), trainings, explained, ignores=self._wishes.ignores, faults=faults)
        stages = report.stages or (NOTHING_TRAINED,)
        told = [rule for f in report.findings for rule in (f.rule, *(c.rule for c in f.consequences))]
        if self._wishes.replay_on_cpu and "asynchronous-error" in told:
            stages = (*stages, self._again(trainings))
        return dataclasses.replace(report, stages=stages, script=self._script.name, exit_code=ending.exit_code)

    def _again(self, trainings: Sequence[TrainingReports]) -> StageResult:
        """Run the script once more where its line can be trusted."""
        courses = [t.watched.history for t in trainings if t.watched is not None and t.watched.history is not None]
        steps = max((course.total_steps for course in courses), default=0)
        patience = PATIENCE_S + SLOWER * (time.monotonic() - self._started)
        try:
            again = run_again(self._script.command, self._folder, steps, patience, self._run.save_batches)
        except KeyboardInterrupt:
            return StageResult("run again", "not judged", "interrupted")
        return StageResult("run again", "stopped" if again.failed else "passed", again.told)

    def _title(self, ending: Ending) -> str:
        if isinstance(ending.error, SyntaxError) and ending.error.__traceback__ is None:
            return f"{self._script.name} does not compile, and was not run"
        said = [f"ran {self._script.name}", _duration(time.monotonic() - self._started)]
        if self._limits.reached is not None:
            said.append(f"stopped after {self._limits.reached}, as asked")
        elif ending.exit_code:
            said.append(f"exit code {ending.exit_code}")
        return ", ".join(said)

    def _tell(self, report: Report) -> None:
        self._told = True
        quiet = self._wishes.quiet and not self._fails(report) and report.crash is None
        if self._wishes.output is not None:
            try:
                self._wishes.output.write_text(_text(report, self._wishes.kind) + "\n", encoding="utf-8")
            except OSError as error:
                _print(f"diagnose: {self._wishes.output} cannot be written: {error.strerror}.")
            else:
                if not quiet:
                    _print(f"diagnose: the report is in {self._wishes.output}")
                return
        if not quiet:
            _print(report.to_json() if self._wishes.kind == "json" else report)

    def _fails(self, report: Report) -> bool:
        if self._wishes.fail_on == "never":
            return False
        bad = FAIL_ON[: FAIL_ON.index(self._wishes.fail_on) + 1]
        return any(finding.severity in bad for finding in report.findings)


def _print(what: str | Report) -> None:
    """Print to standard error, if it is there: the script may have closed it, and `| head` reads no more of it."""
    from rich.console import Console

    with contextlib.suppress(OSError, ValueError, SystemExit):  # SystemExit is what rich makes of a closed pipe
        if isinstance(what, str):
            print(what, file=sys.stderr)
            return
        console = Console(stderr=True, highlight=False)
        console.print()
        console.print(what)


def _text(report: Report, kind: str) -> str:
    if kind == "html":
        from .html_report import page

        return page(report)
    return report.to_json() if kind == "json" else str(report)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
