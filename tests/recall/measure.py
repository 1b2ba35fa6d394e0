"""How many bugs `diagnose run` names, and how many healthy programs it alarms.

Each program in broken/ names in a comment the rules that would be right; those in healthy/ must get no error
and no warning. The folders in both are stages, and in them the rules that a broken program wants first: a healthy
one stands with the broken ones that it resembles, or in the stage alone. Write them as other people write theirs:
nothing here is tuned to a rule. A program for several processes says so in a comment: torchrun starts it, and what
`diagnose join` says of its ranks counts.

A second table is of the functions that are called in a program, a test or a notebook: functions/ has cases of
each.

With --variant every variable has another name, or the module's code is in a function or in a method: the findings
must be the same.

With --cut the healthy programs, and those of tests/healthy and the repaired exhibits, end early, as in a first
try: after one epoch, or after 16, 30 or 64 steps. They must get no error and no warning then, either. A cut
program that also fails without `diagnose run` (ranks whose epochs differ in length, say) is listed, not counted.

$ python tests/recall/measure.py                          # all of them
$ python tests/recall/measure.py --record                 # and keep the result for the book
$ python tests/recall/measure.py --every 8                # one in eight
$ python tests/recall/measure.py --only collapsed-schedule --jobs 1
$ python tests/recall/measure.py --cut 16                 # the healthy ones, to 16 steps
$ python tests/recall/measure.py --cut in-turn --every 16 # one in sixteen, and one cut, each to another length
$ python tests/recall/measure.py --variant renamed --every 8 # every variable under another name
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(ROOT))

from bugs.zoo.keeper.warm import WarmProcesses, kind_of  # noqa: E402
from diagnostics.report.merge import PLACES  # noqa: E402
from tests.recall.cutting import CUTS  # noqa: E402
from tests.recall.programs import IN_TURN, Program, cut_programs, programs, source, variants_of  # noqa: E402
from tests.recall.variants import VARIANTS  # noqa: E402

PACKAGES = ("torch", "keras", "tensorflow", "transformers")
RECORD, CUT_RECORD = FOLDER / "measured.json", FOLDER / "measured_cuts.json"
JUDGED = "judged, and below its threshold"
NOT_FIRST = "named, behind another finding"
LIMIT_S = 300  # of one program
INTERRUPTED = 130  # exit code at Ctrl-C
ENDS_S = 40  # for a launcher that is told to end, which gives its processes 30 seconds
SLOWEST = 20  # that are printed: shorten them first
LOCATED = 0.8  # of the errors and warnings about a line, that name one
STILL_NAMED = 0.95  # of the programs on record, when they are rewritten
STALL_S = 20  # a collective of a program that hangs gives up after 40 seconds


@dataclass(frozen=True)
class Outcome:
    """What `diagnose run` said of a program.

    Attributes:
        findings: rule and severity, in the order of the report, consequences after their cause.
        failure: why there is no report; empty if there is one.
        not_judged: by rule, what it would have needed.
        located: of its errors and warnings about a line of a script, whether each names one.
        seconds: until the report was there.
    """

    program: Program
    findings: tuple[tuple[str, str], ...] = ()
    failure: str = ""
    not_judged: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    located: tuple[bool, ...] = ()

    @property
    def is_broken_by_its_cut(self) -> bool:
        """Return whether the cut program alarms and fails when nothing observes it."""
        return bool(self.program.cut and self.alarms) and not _succeeds_plain(self.program)

    @property
    def is_named(self) -> bool:
        return any(rule in self.program.rules for rule, _ in self.findings)

    @property
    def is_named_first(self) -> bool:
        return bool(self.findings) and self.findings[0][0] in self.program.rules

    @property
    def is_only_noted(self) -> bool:
        severities = {severity for rule, severity in self.findings if rule in self.program.rules}
        return severities == {"note"}

    @property
    def reason(self) -> str:
        """Why the right rules did not name the bug, as far as the report knows."""
        said = dict.fromkeys(self.not_judged.get(rule, JUDGED) for rule in self.program.rules)
        return "; ".join(said) if not self.is_named else NOT_FIRST

    @property
    def alarms(self) -> list[str]:
        """Errors and warnings of other rules than the right ones."""
        return [rule for rule, severity in self.findings if severity != "note" and rule not in self.program.rules]


@dataclass
class Row:
    """One line of the table."""

    programs: int = 0
    named: int = 0
    first: int = 0
    noted: int = 0
    strays: int = 0
    missed: list[str] = field(default_factory=list)


def run(program: Program, warm: WarmProcesses | None = None) -> Outcome:
    """Run one program under `diagnose run`, in a folder of its own; in a fork if there are warm processes."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            script = _script(program, folder)
            if program.ranks == 1:
                report, errors = _report(script, folder, warm)
            else:
                report, errors = _joined_report(script, program, folder, _environment())
        except subprocess.TimeoutExpired:
            return Outcome(program, failure=f"not over after {LIMIT_S} seconds")
    took = time.monotonic() - started
    if not report:
        return Outcome(program, failure=errors.strip().rpartition("\n")[2], seconds=took)
    said = json.loads(report)
    located = tuple(
        one["where"] is not None
        for one in said["findings"]
        if one["severity"] != "note" and (one["where"] is not None or one["stage"] in PLACES)
    )
    return Outcome(
        program, tuple(_flat(said["findings"])), "; ".join(said["faults"]), said["reasons"], took, located
    )


def _script(program: Program, folder: str) -> Path:
    """Return what is run: the program itself, or in the folder one that is cut or rewritten."""
    if not program.cut and not program.variant:
        return program.path
    script = Path(folder, program.path.name)
    script.write_text(source(program), encoding="utf-8")
    return script


def _report(script: Path, folder: str, warm: WarmProcesses | None) -> tuple[str, str]:
    """Return the JSON report of one process, empty if there is none, and its standard error."""
    arguments = ["run", "--output", "report.json", str(script)]
    kind = kind_of(script.read_text(encoding="utf-8")) if warm else None
    if warm and kind:
        ended = warm.diagnose(kind, arguments, Path(folder), LIMIT_S)
    else:
        ended = _ended([sys.executable, "-m", "diagnostics", *arguments], folder, _environment())
    report = Path(folder, "report.json")
    return report.read_text(encoding="utf-8") if report.is_file() else "", ended.stderr


def _joined_report(script: Path, program: Program, folder: str, environment: dict[str, str]) -> tuple[str, str]:
    """Return the joined JSON report of several processes, empty if there is none, and its standard error."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(program.ranks)]
    observed = ["-m", "diagnostics", "run", "--stall-timeout", str(STALL_S), "--output", "report.json"]
    ended = _ended([sys.executable, *launch, *observed, str(script)], folder, environment)
    joined = _ended([sys.executable, "-m", "diagnostics", "join", "--format", "json", "."], folder, environment)
    return joined.stdout, ended.stderr + joined.stderr


def _succeeds_plain(program: Program) -> bool:
    """Run a program without `diagnose run`; return whether it exits with 0 in time."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(program.ranks)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *(launch if program.ranks > 1 else []), str(_script(program, folder))]
        try:
            return _ended(command, folder, _environment()).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def _ended(command: list[str], folder: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; at its time limit a launcher gets the time to end its processes."""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.communicate(timeout=ENDS_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def _flat(findings: list[dict]) -> list[tuple[str, str]]:
    listed = []
    for finding in findings:
        listed.append((finding["rule"], finding["severity"]))
        listed += _flat(finding["consequences"])
    return listed


def table(outcomes: list[Outcome]) -> dict[str, Row]:
    """Count by the first of the right rules."""
    rows: dict[str, Row] = defaultdict(Row)
    for outcome in outcomes:
        if outcome.program.is_healthy:
            continue
        row = rows[outcome.program.rules[0]]
        row.programs += 1
        row.named += outcome.is_named
        row.first += outcome.is_named_first
        row.noted += outcome.is_only_noted
        row.strays += len(outcome.alarms)
        if not outcome.is_named_first:
            row.missed.append(outcome.program.path.stem)
    return dict(sorted(rows.items()))


def show(outcomes: list[Outcome]) -> None:
    """Print the table, what was missed and every alarm."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    listed = Table("rule", "programs", "named", "named first", "only noted", "strays")
    for rule, row in table(outcomes).items():
        listed.add_row(rule, *map(str, (row.programs, row.named, row.first, row.noted, row.strays)))
    console.print(listed)
    broken = [outcome for outcome in outcomes if not outcome.program.is_healthy]
    healthy = [outcome for outcome in outcomes if outcome.program.is_healthy]
    if broken:
        first = sum(outcome.is_named_first for outcome in broken)
        console.print(f"{first} of {len(broken)} bugs named first ({first / len(broken):.0%})")
    for outcome in broken:
        if not outcome.is_named_first:
            said = ", ".join(f"{rule} ({severity})" for rule, severity in outcome.findings) or "nothing"
            console.print(f"  missed {outcome.program.path.stem}: {said}", soft_wrap=True)
    if healthy:
        alarmed = [outcome for outcome in healthy if outcome.alarms]
        console.print(f"{len(alarmed)} of {len(healthy)} healthy programs alarmed")
        for outcome in alarmed:
            console.print(f"  alarm {outcome.program.name}: {', '.join(outcome.alarms)}", soft_wrap=True)
    with_line, of = located(outcomes)
    console.print(f"{with_line} of {of} errors and warnings about a line of the script name it")
    slowest = sorted(outcomes, key=lambda outcome: -outcome.seconds)[:SLOWEST]
    console.print("slowest:", ", ".join(f"{o.program.name} {o.seconds:.0f} s" for o in slowest), soft_wrap=True)
    for outcome in outcomes:
        if outcome.failure:
            console.print(f"  failed {outcome.program.name}: {outcome.failure}", soft_wrap=True)


def located(outcomes: list[Outcome]) -> tuple[int, int]:
    """Count the errors and warnings that name a line of the script, and those that could."""
    found = [there for outcome in outcomes for there in outcome.located]
    return sum(found), len(found)


def functions() -> tuple[bool, dict[str, dict[str, int]]]:
    """Try the functions, and print their table; return whether all was as meant, and what was counted."""
    sys.path.insert(0, str(ROOT))
    from tests.recall.functions.table import counts, measured, show

    failures = measured()
    return show(failures), counts(failures)


def record(outcomes: list[Outcome], counted: dict[str, dict[str, int]]) -> None:
    """Write what was measured, for the book and for later runs to compare with."""
    broken = [outcome for outcome in outcomes if not outcome.program.is_healthy]
    kept = {
        "date": datetime.date.today().isoformat(),
        "versions": {package: metadata.version(package) for package in PACKAGES},
        "rules": {
            rule: {"programs": row.programs, "named": row.named, "first": row.first, "noted": row.noted}
            for rule, row in table(outcomes).items()
        },
        "first": sorted(outcome.program.path.stem for outcome in broken if outcome.is_named_first),
        "missed": {
            outcome.program.path.stem: {
                "wanted": outcome.program.rules[0],
                "reported": [rule for rule, _ in outcome.findings],
                "reason": outcome.reason,
            }
            for outcome in broken
            if not outcome.is_named_first
        },
        "healthy": len(outcomes) - len(broken),
        "alarmed": {o.program.path.stem: o.alarms for o in outcomes if o.program.is_healthy and o.alarms},
        "located": dict(zip(("named", "of"), located(outcomes), strict=True)),
        "functions": counted,
    }
    RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def record_cuts(outcomes: list[Outcome]) -> None:
    """Write what was measured of the cut programs, by cut."""
    kept = json.loads(CUT_RECORD.read_text(encoding="utf-8")) if CUT_RECORD.is_file() else {}
    for length in CUTS:
        cut_there = [outcome for outcome in outcomes if outcome.program.cut == length]
        if cut_there:
            kept[length] = {
                "date": datetime.date.today().isoformat(),
                "programs": len(cut_there),
                "alarmed": {o.program.name: o.alarms for o in cut_there if o.alarms},
                "failed": {o.program.name: o.failure for o in cut_there if o.failure},
            }
    CUT_RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def known() -> set[str]:
    """Return the programs whose bug is named first, by the record."""
    return set(json.loads(RECORD.read_text(encoding="utf-8"))["first"]) if RECORD.is_file() else set()


def lost(outcomes: list[Outcome]) -> list[str]:
    """List the programs whose bug is no longer named first, although the record says that it was."""
    recorded = known()
    broken = [o for o in outcomes if not o.program.is_healthy]  # some healthy twins have the same name
    return [o.program.name for o in broken if o.program.path.stem in recorded and not o.is_named_first]


def run_all(chosen: list[Program], jobs: int) -> list[Outcome]:
    """Run the programs, so many at a time, and show how far it is.

    Each alarm is printed once it is known. At Ctrl-C the outcomes of the programs that have ended are returned.
    """
    outcomes: list[Outcome] = []
    of_thread, started = threading.local(), list[WarmProcesses]()

    def start() -> None:
        of_thread.warm = WarmProcesses()
        started.append(of_thread.warm)

    with ThreadPoolExecutor(jobs, initializer=start) as pool:
        waiting = [pool.submit(lambda program: run(program, of_thread.warm), program) for program in chosen]
        try:
            for ended in as_completed(waiting):
                outcome = ended.result()
                outcomes.append(outcome)
                if outcome.program.is_healthy and outcome.alarms:
                    print(f"\ralarm {outcome.program.name}: {', '.join(outcome.alarms)}", file=sys.stderr)
                print(f"\r{len(outcomes)} of {len(chosen)}", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    print(file=sys.stderr)
    for warm in started:
        warm.close()
    place = {program: number for number, program in enumerate(chosen)}
    return sorted(outcomes, key=lambda outcome: place[outcome.program])


def main() -> int:
    """Measure.

    Returns:
        1 if a healthy program is alarmed, bugs are no longer named, a program fails to run, or too few findings
        name the line that they are about; 130 at Ctrl-C; 0 otherwise.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="RULE", help="broken programs of one rule")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run one program in N, always the same")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}, which the book shows")
    parser.add_argument(
        "--cut",
        action="append",
        choices=(*CUTS, IN_TURN),
        help=f"healthy programs, ended early; more than once. {IN_TURN}: beside the programs as they are",
    )
    parser.add_argument("--variant", choices=VARIANTS, help="programs rewritten in one way")
    options = parser.parse_args()
    if options.record and (
        options.only or options.every != 1 or options.variant or IN_TURN in (options.cut or ())
    ):
        parser.error(
            "--record needs all programs as they are: leave out --only, --every, --variant, --cut in-turn"
        )
    chosen = programs(options.only)[:: options.every]
    only_cut = options.cut and IN_TURN not in options.cut
    if options.cut:
        chosen = [*([] if only_cut else chosen), *cut_programs(options.cut, options.every)]
    elif options.variant:
        chosen = variants_of(chosen, options.variant)
    outcomes = run_all(chosen, options.jobs)
    if len(outcomes) < len(chosen):
        show(outcomes)
        print(f"interrupted after {len(outcomes)} of {len(chosen)} programs; nothing was run a second time")
        return INTERRUPTED
    # A busy machine may leave the second look no time: what is lost, or alarmed, is run once more, with nothing
    # beside it and in an interpreter of its own.
    doubted = {
        *lost(outcomes),
        *(o.program.name for o in outcomes if o.failure or (o.program.is_healthy and o.alarms)),
    }
    again = {program.name: run(program) for program in chosen if program.name in doubted}
    outcomes = [again.get(o.program.name, o) for o in outcomes]
    broken_by_cut = [outcome for outcome in outcomes if outcome.is_broken_by_its_cut]
    outcomes = [outcome for outcome in outcomes if outcome not in broken_by_cut]
    show(outcomes)
    for outcome in broken_by_cut:
        print(f"left out, because it also fails without diagnose run: {outcome.program.name}")
    if again:
        print("run a second time, alone:", ", ".join(again))
    no_longer = lost(outcomes)
    still = sum(outcome.is_named_first for outcome in outcomes if outcome.program.path.stem in known())
    if no_longer:
        print("no longer named first:", ", ".join(no_longer))
    print(f"{still} of {still + len(no_longer)} named first, as on record")
    as_meant, counted = (True, {}) if options.only or only_cut or options.variant else functions()
    if options.record and options.cut:
        record_cuts(outcomes)
    elif options.record:
        record(outcomes, counted)
    alarmed = any(outcome.failure or (outcome.program.is_healthy and outcome.alarms) for outcome in outcomes)
    too_few = still < (STILL_NAMED if options.variant else 1) * (still + len(no_longer))
    with_line, of = located(outcomes)
    return int(alarmed or too_few or not as_meant or with_line < LOCATED * of)


if __name__ == "__main__":
    sys.exit(main())
