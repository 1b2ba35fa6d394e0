"""`diagnose run`: examines, watches and explains a script that nobody changed."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import InvalidInput
from .ignores import from_option, from_pyproject
from .limits import Limits
from .merging import TrainingReports, merged
from .report import Report, StageResult
from .running import Run
from .script import Ending, Script
from .second_run import run_again

FORMATS = ("text", "json", "html")
FAIL_ON = ("error", "warning", "never")
FOUND = 1
PATIENCE_S, SLOWER = 60, 10  # a run on the CPU is given a minute, and ten times what the first took
NOTHING_TRAINED = StageResult(
    "training",
    "not judged",
    "none was seen: no Trainer.train, no Keras fit, and no PyTorch optimizer that stepped with a model",
)

DESCRIPTION = """\
Runs a script as `python` would, with nothing added to it, and says at its end what is wrong with its training:
what was seen before it began, while it ran, and in the exception that ended it. Output, results and exit code are
the script's own; the report goes to standard error, or to a file.
"""
EPILOG = """\
Options stand before the script; what follows it is the script's own. Exit code: the script's own if it is not 0;
else 1 if there are findings of the severity of --fail-on or above; else 0.
"""


def add_to(commands: Any) -> None:
    """Add `run` to the subparsers of `diagnose`."""
    run = commands.add_parser(
        "run",
        help="run a script as python would, and say what is wrong with its training",
        usage="diagnose run [options] SCRIPT | -m MODULE [arguments]",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    run.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` would")
    run.add_argument("script", metavar="SCRIPT", nargs="?", help="the script")
    run.add_argument("--format", choices=FORMATS, help="of the report (default: by the name of FILE, else text)")
    run.add_argument("--output", metavar="FILE", type=Path, help="write the report there, and not to the terminal")
    run.add_argument("--fail-on", choices=FAIL_ON, default="warning", help="the findings that make it fail")
    run.add_argument("--ignore", metavar="RULE[,RULE]", default="", help="rules that shall say nothing")
    run.add_argument("--max-steps", metavar="N", type=_whole, help="stop the script after so many optimizer steps")
    run.add_argument("--time-limit", metavar="S", type=_seconds, help="stop the script after so many seconds")
    run.add_argument(
        "--replay-on-cpu",
        action="store_true",
        help="if a GPU fails, run the script once more on the CPU, for the line that truly failed",
    )
    run.add_argument("--quiet", action="store_true", help="print no report if there is nothing to fail on")
    run.set_defaults(command=_run)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part `diagnose`'s arguments from those of the script that it is to run, which may look like its own."""
    given = list(arguments)
    if not given or given[0] != "run":
        return given, []
    takes_a_value = {"--format", "--output", "--fail-on", "--ignore", "--max-steps", "--time-limit"}
    at = 1
    while at < len(given):
        word = given[at]
        if word == "-m" or (word.startswith("-m") and not word.startswith("--")):
            end = at + 2 if word == "-m" else at + 1
            return given[:end], given[end:]
        if not word.startswith("-") or word == "-":
            return given[: at + 1], given[at + 1 :]
        at += 2 if word in takes_a_value else 1
    return given, []


def _run(options: argparse.Namespace) -> int:
    if (options.script is None) == (options.module is None):
        raise InvalidInput("nothing to run was named. Name a script, or a module after -m: diagnose run train.py")
    kind = _format(options)
    ignores = from_pyproject(Path.cwd()) | from_option(options.ignore)
    output = None if options.output is None else _checked(options.output)
    script = Script(options.module or options.script, options.arguments, module=options.module is not None)
    return _Visit(script, kind, output, options, ignores).make()


class _Visit:
    """One script, from its start to the report."""

    def __init__(
        self, script: Script, kind: str, output: Path | None, options: argparse.Namespace, ignores: dict[str, str]
    ) -> None:
        self._script, self._kind, self._output, self._ignores = script, kind, output, ignores
        self._options = options
        self._limits = Limits(options.max_steps, options.time_limit)
        self._process, self._folder = os.getpid(), str(Path.cwd())
        self._started = time.monotonic()
        self._told = self._left = False

    def make(self) -> int:
        self._run = Run()
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
        report = merged(self._title(ending), trainings, explained, ignores=self._ignores, faults=faults)
        stages = report.stages or (NOTHING_TRAINED,)
        if self._options.replay_on_cpu and any(f.rule == "asynchronous-error" for f in report.findings):
            stages = (*stages, self._again(trainings))
        return dataclasses.replace(report, stages=stages, script=self._script.name, exit_code=ending.exit_code)

    def _again(self, trainings: Sequence[TrainingReports]) -> StageResult:
        """Run the script once more where its line can be trusted."""
        courses = [t.watched.history for t in trainings if t.watched is not None and t.watched.history is not None]
        steps = max((course.total_steps for course in courses), default=0)
        print(
            f"diagnose: running {self._script.name} once more, on the CPU, up to step {steps} (Ctrl-C to stop)",
            file=sys.stderr,
        )
        patience = PATIENCE_S + SLOWER * (time.monotonic() - self._started)
        try:
            again = run_again(self._script.command, self._folder, steps, patience)
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
        quiet = self._options.quiet and not self._fails(report) and report.crash is None
        if self._output is not None:
            try:
                self._output.write_text(_text(report, self._kind) + "\n", encoding="utf-8")
            except OSError as error:
                print(f"diagnose: {self._output} cannot be written: {error.strerror}.", file=sys.stderr)
            else:
                if not quiet:
                    print(f"diagnose: the report is in {self._output}", file=sys.stderr)
                return
        if quiet:
            return
        if self._kind == "json":
            print(report.to_json(), file=sys.stderr)
            return
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        console.print()
        console.print(report)

    def _fails(self, report: Report) -> bool:
        if self._options.fail_on == "never":
            return False
        bad = FAIL_ON[: FAIL_ON.index(self._options.fail_on) + 1]
        return any(finding.severity in bad for finding in report.findings)


def _text(report: Report, kind: str) -> str:
    if kind == "html":
        from .html_report import page

        return page(report)
    return report.to_json() if kind == "json" else str(report)


def _format(options: argparse.Namespace) -> str:
    if options.format is None:
        ending = "" if options.output is None else options.output.suffix.lstrip(".")
        return ending if ending in FORMATS else "text"
    if options.format == "html" and options.output is None:
        raise InvalidInput("a report in HTML needs a file: --output report.html")
    return str(options.format)


def _checked(output: Path) -> Path:
    """Refuse a file that cannot be written before the script has run for hours."""
    if output.is_dir():
        raise InvalidInput(f"--output was given {output}, which is a folder. Name a file in it.")
    target = output.absolute()  # the script may change the working directory
    if not target.parent.is_dir():
        raise InvalidInput(f"--output was given {output}, and there is no folder {target.parent}.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInput(f"--output was given {output}, which must not be written to.")
    return target


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of steps, 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
