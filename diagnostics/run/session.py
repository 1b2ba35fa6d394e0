"""One run of a script under `diagnose run`, from its start to the report."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from diagnostics.api.explain import explanation_of
from diagnostics.collectors.isolation.collection import without_collection
from diagnostics.collectors.source.read import files_of, written_facts
from diagnostics.errors import message_of, typed_message
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.facts.ranks.stall import StallFacts
from diagnostics.facts.written import WrittenFacts
from diagnostics.report.build import extended
from diagnostics.report.contents import StageResult
from diagnostics.report.merge import TrainingReports, merged
from diagnostics.report.ranks import report_of
from diagnostics.report.report import Report
from diagnostics.text.join import count_of, duration

from .compared_rates import without_bad_trials
from .cpu_rerun import run_again
from .delivery import Delivery
from .ending.exits import Exits
from .ending.progress import Progress
from .limits import Limits
from .memory_reserve import MemoryReserve
from .observer import ScriptObserver
from .observers.replicas import ReplicaObserver
from .output import rehearse, say
from .own_modules import OwnModules, is_alias
from .ranks.exchange import Exchange, Rank
from .ranks.reports import joined, stall_report
from .ranks.spawned import SpawnedRanks
from .ranks.stall import LIMIT_S, StallWatch
from .script import Ending, Script, end_by_interrupt, working_folder
from .second_look import budget
from .termination import Termination
from .unseen_training import nothing_trained, seconds_of_children, short_trainings

FOUND = 1
PATIENCE_S, SLOWER = 60, 10  # time limit of a run on the CPU: a minute plus ten times the first run
MOST_OF_ERROR = 300  # characters of its first line that a rank's notes keep
UNFINISHED = (
    "not seen: this was known after {}. The script is still running, or its process was killed (the memory of the "
    "machine may have run out), or crashed in compiled code"
)
ONE_OF_MANY = "needs a script with one process; this one waits for the other ranks"


@dataclass(frozen=True)
class RunOptions:
    """The options of `diagnose run`.

    Attributes:
        kind: of the report: one of `diagnostics.report.report.KINDS`.
        output: the file for the report, or `STANDARD_OUTPUT`; None for standard error.
        fail_on: the lowest severity that makes the exit code 1, ``error`` or ``warning``; ``never``.
        ignores: ignored rules, each with the reason.
        settings: mistakes in the project's pyproject.toml.
        max_steps: optimizer steps after which the script is stopped; None for no limit.
        time_limit: seconds after which it is stopped; None for no limit.
        replay_on_cpu: whether to run it once more on the CPU if a GPU fails.
        first_batches: a file with the first batches for its first loader; None for the loader's own.
        quiet: whether to print no report unless the run fails.
        verbose: whether the text shows every stage, and each rule that could not be checked.
        second_look: seconds for the second look at most; 0 for none, None for a share of the run.
        redact: whether Markdown leaves out private parts; see `Report.to_markdown`.
        rank: of this process under a launcher, where the exit code is the script's; None without a launcher.
        stall_timeout: seconds without a step after which to say where each rank stands; 0 for never, None for
            `LIMIT_S`. Of several ranks only.
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
    second_look: float | None = None
    rank: Rank | None = None
    verbose: bool = False
    redact: bool = True
    stall_timeout: float | None = None
    settings: tuple[str, ...] = ()


class RunSession:
    """One script, from its start to the report."""

    def __init__(self, script: Script, options: RunOptions) -> None:
        """Prepare; nothing is run yet."""
        self._script, self._options = script, options
        self._limits = Limits(options.max_steps, options.time_limit)
        self._folder = working_folder()
        self._started, self._began, self._in_others = time.monotonic(), time.time(), seconds_of_children()
        self._spawned: SpawnedRanks | None = None

    def make(self) -> int:
        """Run the script, write the report, and return the exit code.

        Raises:
            KeyboardInterrupt: Ctrl-C ended the script, and must end this process, by SIGINT.
        """
        with without_collection():  # importing our modules would set off three of the whole heap
            rehearse(self._options.kind)
        self._ranks = None if self._options.rank is None else Exchange(self._options.rank)
        self._delivery = Delivery(self._options, self._ranks)
        alone = self._options.rank is None or self._options.rank.world == 1
        self._run = ScriptObserver(
            keep_batches=self._options.replay_on_cpu,
            first_batches=self._options.first_batches,
            looks_again=alone and self._options.second_look != 0,
            ranks=1 if self._options.rank is None else self._options.rank.world,
        )
        self._stall = self._stall_watch()
        termination, reserve = Termination(self._terminated), MemoryReserve()
        self._modules = OwnModules(self._script.folder)
        self._modules.hide()
        if self._options.rank is None and not self._modules.clashes and not is_alias():
            self._spawned = SpawnedRanks(self._script, self._options)
        progress = contextlib.nullcontext() if self._delivery.file is None else Progress(self._keep)
        with self._limits, progress, Exits(self._left):
            ending = self._script.run(self._limits.was_reached, failing=reserve.release)
        fails = False
        if not ending.forked:  # a forked child of the script writes no report
            if not ending.exit_code:
                termination.set_aside()  # the second look is given up at once
            with termination.postponed():
                fails = self._conclude(ending)
        if ending.interrupted:
            end_by_interrupt()
        return ending.exit_code or (FOUND if fails and self._options.rank is None else 0)

    def _stall_watch(self) -> StallWatch | None:
        """Watch for steps that do not end, if there are other ranks that might wait for this one."""
        rank, limit = self._options.rank, self._options.stall_timeout
        if rank is None or self._ranks is None or rank.world == 1 or limit == 0:
            return None
        limit = LIMIT_S if limit is None else limit
        watch = StallWatch(rank, self._ranks, limit, self._tell_stall, self._run.replicas)
        watch.start()
        return watch

    def _tell_stall(self, facts: StallFacts) -> None:
        """Print where all ranks stand; in another thread, while the script waits."""
        if not self._delivery.begun:
            self._delivery.print_new(stall_report(facts))

    def _terminated(self, number: int) -> None:
        if not self._delivery.begun:
            self._conclude(Ending(128 + number, abrupt=True))

    def _left(self, status: int) -> None:
        if not self._delivery.begun:
            self._delivery.abrupt = True
            self._conclude(Ending(status & 0xFF, abrupt=True))

    def _keep(self, steps: int) -> None:
        """Write what is known while the script runs."""
        faults = len(self._run.faults)
        with self._modules.shown(running=True):
            trainings = [
                TrainingReports(t.examined, self._run.course(t, complete=False), t.alone)
                for t in self._run.trainings
            ]
            ran = duration(time.monotonic() - self._started)
            report = merged(f"running {self._script.name}, {ran}", trainings, ignores=self._options.ignores)
            del self._run.faults[faults:]  # an error that matters comes again
            stage = StageResult("end of the run", "failed", UNFINISHED.format(count_of(steps, "optimizer step")))
            self._delivery.keep(
                dataclasses.replace(
                    report,
                    stages=(*report.stages, stage),
                    script=self._script.name,
                    settings=self._options.settings,
                    ignored_in_vain=(),
                )
            )

    def _conclude(self, ending: Ending) -> bool:
        """Write the report, and return whether its findings make the run fail. Never raises."""
        fails = False
        try:
            with self._modules.shown():
                report = self._report(ending)
                fails = self._delivery.fails(report)
                self._delivery.deliver(report)
        except BaseException as fault:  # also Ctrl-C, and what the script has broken; its exit code is kept
            say(f"diagnose: making the report failed: {type(fault).__name__}: {message_of(fault)}")
        return fails

    def _report(self, ending: Ending) -> Report:
        ran = time.monotonic() - self._started
        self._run.close()
        looked, complete = None, self._limits.reached is None and _ended_by_itself(ending)
        if ending.exit_code == 0 and not ending.abrupt:  # else somebody waits for the report
            looked = self._run.look_again(budget(self._options.second_look, ran), complete)
        trainings = [
            TrainingReports(t.examined, self._run.course(t, complete), t.alone) for t in self._run.trainings
        ]
        explained, faults = None, list(self._run.faults)
        with _fault_kept(faults, "reading the source"):
            trainings = self._with_source(trainings)
        with _fault_kept(faults, "comparing the trainings"):
            trainings = without_bad_trials(trainings)
        stalled = None if self._stall is None else self._stall.close()
        if self._stall is not None and self._stall.fault is not None:
            faults.append(self._stall.fault)
        if ending.error is not None and ending.error.__traceback__ is not None:
            with _fault_kept(faults, "explaining the exception"):
                explained = explanation_of(ending.error)
        if stalled is not None and ending.exit_code:  # not a stall that passed
            explained = joined(explained, stall_report(stalled))
        notes = None
        if self._run.replicas is not None and self._options.rank is not None:
            notes = self._notes(self._run.replicas, self._options.rank, ending, stalled)
            wrapper, made = self._run.replicas.facts(), None if self._stall is None else self._stall.made
            facts = [] if wrapper is None else [dataclasses.replace(wrapper, collectives=made)]
            if wrapper is not None or notes.iterations:
                explained = joined(explained, report_of(*facts, notes))
            faults += [] if self._run.replicas.fault is None else [self._run.replicas.fault]
        of_ranks: list[Report] = []
        with _fault_kept(faults, "joining the ranks' reports"):
            of_ranks = [] if self._spawned is None else self._spawned.reports()
        for each in reversed(of_ranks):
            explained = joined(explained, each)
        report = merged(
            self._title(ending, ran), trainings, explained, ignores=self._options.ignores, faults=faults
        )
        in_others = seconds_of_children() - self._in_others
        stages = (*report.stages, *(stage for each in of_ranks for stage in each.stages))
        stages = stages or (nothing_trained(self._run.backward_passes, in_others),)
        stages = (*stages, *([short_trainings(self._run.short)] if self._run.short else []))
        stages = (*stages, *([] if looked is None else [looked]))
        found = [rule for f in report.findings for rule in (f.rule, *(c.rule for c in f.consequences))]
        if self._options.replay_on_cpu and "asynchronous-error" in found:
            alone = self._options.rank is None or self._options.rank.world == 1
            again = self._again(trainings) if alone else StageResult("run again", "not judged", ONE_OF_MANY)
            stages = (*stages, again)
        return dataclasses.replace(
            report,
            stages=stages,
            script=self._script.name,
            exit_code=ending.exit_code,
            verbose=self._options.verbose,
            settings=self._options.settings,
            rank=notes,
        )

    def _notes(
        self, replicas: ReplicaObserver, rank: Rank, ending: Ending, stalled: StallFacts | None
    ) -> RankNotes:
        """Return what this rank noted for a comparison with the others."""
        error = "" if ending.error is None else typed_message(ending.error).strip().partition("\n")[0]
        ranks = () if stalled is None or not ending.exit_code else stalled.ranks
        plain = RankNotes(
            number=rank.number,
            world=rank.world,
            host=socket.gethostname(),
            backward_passes=self._run.backward_passes,
            exit_code=ending.exit_code,
            error=error[:MOST_OF_ERROR],
            stalled=next((one for one in ranks if one.number == rank.number), None),
            began=self._began,
            ended=time.time(),
        )
        return replicas.filled(plain)

    def _with_source(self, trainings: list[TrainingReports]) -> list[TrainingReports]:
        """Evaluate the rules on what stands in the script's source, for the last training of those watched."""
        file, watched = self._script.file, [t for t in trainings if t.watched is not None]
        if file is None or not watched or watched[-1].watched is None:
            return trainings
        facts = written_facts(files_of(file, self._script.folder), *_answers(trainings))
        if facts == WrittenFacts():
            return trainings
        seen = dataclasses.replace(watched[-1], watched=extended(watched[-1].watched, (facts,)))
        return [seen if training is watched[-1] else training for training in trainings]

    def _again(self, trainings: Sequence[TrainingReports]) -> StageResult:
        """Run the script once more on the CPU, where the traceback ends at the failing line."""
        courses = [t.watched.history for t in trainings if t.watched is not None and t.watched.history is not None]
        steps = max((course.steps.total_steps for course in courses), default=0)
        patience = PATIENCE_S + SLOWER * (time.monotonic() - self._started)
        try:
            again = run_again(self._script.command, self._folder, steps, patience, self._run.save_batches)
        except KeyboardInterrupt:
            return StageResult("run again", "not judged", "interrupted")
        return StageResult("run again", "stopped" if again.failed else "passed", again.summary)

    def _title(self, ending: Ending, ran: float) -> str:
        if isinstance(ending.error, SyntaxError) and ending.error.__traceback__ is None:
            return f"{self._script.name} does not compile, and was not run"
        rank = self._options.rank
        of_ranks = [] if rank is None or rank.world == 1 else [f"rank {rank.number} of {rank.world}"]
        parts = [f"ran {self._script.name}", *of_ranks, duration(ran)]
        if self._limits.reached is not None:
            parts.append(f"stopped after the limit of {self._limits.reached}")
        elif ending.exit_code or ending.abrupt:
            parts.append(f"exit code {ending.exit_code}")
        return ", ".join(parts)


def _answers(trainings: Sequence[TrainingReports]) -> tuple[tuple[int, ...] | None, str | None, bool]:
    """Return shape and activation of the predictions for a batch, and whether they are logits of two classes.

    Nothing unless there is one training, and it is known.
    """
    from diagnostics.facts.pipeline import LossFacts, OutputFacts

    if len(trainings) != 1 or trainings[0].examined is None:
        return None, None, False
    facts = trainings[0].examined.facts
    outputs = next((fact for fact in facts if isinstance(fact, OutputFacts)), None)
    loss = next((fact for fact in facts if isinstance(fact, LossFacts)), None)
    binary_logits = loss is not None and loss.kind == "binary_cross_entropy" and loss.reads == "logits"
    if outputs is None:
        return None, None, binary_logits
    return outputs.shape, outputs.last_activation, binary_logits


@contextmanager
def _fault_kept(faults: list[str], work: str) -> Iterator[None]:
    """Keep an error of this library among the faults: it must not prevent the report."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        faults.append(f"{work} failed: {type(fault).__name__}: {message_of(fault)}")


def _ended_by_itself(ending: Ending) -> bool:
    """Whether nothing cut the script off: an assertion on its results comes after its training."""
    if ending.interrupted or ending.exit_code >= 128:
        return False
    return ending.error is None or isinstance(ending.error, AssertionError)
