"""One run of a script under `diagnose run`, from its start to the report."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from diagnostics.api.explain import explanation_of
from diagnostics.api.stop_on import EARLIEST, stop_at
from diagnostics.collectors.isolation.internal import without_collection
from diagnostics.collectors.source.compared_shapes import compared_pairs, reshaped_arrays
from diagnostics.collectors.source.read import files_of, parsed, patterns_of
from diagnostics.errors import InvalidInput, TrainingStopped, message_of
from diagnostics.facts.where import shorten
from diagnostics.facts.written import WrittenPatterns
from diagnostics.report.build import with_source
from diagnostics.report.code_frames import with_code
from diagnostics.report.contents import StageResult, Status
from diagnostics.report.loggers import Alerts
from diagnostics.report.merge import TrainingReports, merged
from diagnostics.report.report import Report
from diagnostics.run.observers.training import nothing_trained, seconds_of_children, short_trainings
from diagnostics.run.output import Delivery
from diagnostics.text.join import count_of, duration

from .compared_rates import without_bad_trials
from .cpu_rerun import run_again
from .extra import Extra
from .library_modules import LibraryModules
from .observer import ScriptObserver
from .options import RunOptions
from .output import rehearse, say
from .script import Ending, Script, end_by_interrupt, working_folder
from .steps import Limits, Progress
from .termination import ExitHook, MemoryReserve, Termination

FOUND = 1
PATIENCE_S, SLOWER = 60, 10  # time limit of a run on the CPU: a minute plus ten times the first run
UNFINISHED = (
    "not seen: this was known after {}. The script is still running, or its process was killed (the memory of the "
    "machine may have run out), or crashed in compiled code"
)
ONE_OF_MANY = "needs a script with one process; this one waits for the other ranks"


class RunSession:
    """One script, from its start to the report."""

    def __init__(
        self, script: Script, options: RunOptions, delivery: Delivery | None = None, extras: Sequence[Extra] = ()
    ) -> None:
        """Prepare; nothing is run yet.

        Args:
            script: to be run.
            options: of the run.
            delivery: of the report; None for one that follows the options alone.
            extras: what is done besides observing trainings.
        """
        self._script, self._options, self._extras = script, options, extras
        self._delivery = Delivery(options) if delivery is None else delivery
        self._limits = Limits(options.max_steps, options.time_limit)
        self._folder = working_folder()
        self._started, self._in_others = time.monotonic(), seconds_of_children()
        self._began = time.time()
        wanted = self._delivery.file is not None or options.stop_on is not None or options.alerts
        self._progress = Progress(self._work if wanted else None, self._still_running, self._shown)
        self._alerts = Alerts()
        self._stopped = ""  # what is to be said of a training that `stop_on` has ended

    def make(self) -> int:
        """Run the script, write the report, and return the exit code.

        Raises:
            KeyboardInterrupt: Ctrl-C ended the script, and must end this process, by SIGINT.
        """
        with without_collection():  # importing our modules would set off three of the whole heap
            rehearse(self._options.kind)
        self._observe()
        termination, reserve = Termination(self._terminated), MemoryReserve()
        with self._limits, self._progress, ExitHook(self._left):
            ending = self._script.run(self._limits.was_reached, failing=reserve.release)
        fails = False
        if not ending.forked:  # a forked child of the script writes no report
            if not ending.exit_code:
                termination.set_aside()  # the second look is given up at once
            with termination.postponed():
                fails = self._conclude(ending)
        if ending.interrupted:
            end_by_interrupt()
        keeps = any(extra.keeps_exit_code for extra in self._extras)
        return ending.exit_code or (FOUND if fails and not keeps else 0)

    def _observe(self) -> None:
        """Observe from now on, with this library's modules hidden from the script."""
        self._run = ScriptObserver(
            self._examined,
            keep_batches=self._options.replay_on_cpu,
            first_batches=self._options.first_batches,
            looks_again=self._is_alone and self._options.second_look != 0,
            extras=self._extras,
            on_broken=None if self._options.stop_on is None else self._stop,
            shows_batch=self._options.policy.show_batch,
        )
        self._modules = LibraryModules(self._script.folder)
        self._modules.hide()
        for extra in self._extras:
            extra.start(self._modules)

    def _examined(self, report: Report) -> None:
        for extra in self._extras:
            extra.examined(report)

    @property
    def _is_alone(self) -> bool:
        """Whether no other process waits for this one."""
        return not any(extra.title for extra in self._extras)

    def _terminated(self, number: int) -> None:
        if not self._delivery.begun:
            self._conclude(Ending(128 + number, abrupt=True))

    def _left(self, status: int) -> None:
        if not self._delivery.begun:
            self._delivery.abrupt = True
            self._conclude(Ending(status & 0xFF, abrupt=True))

    def _shown(self) -> contextlib.AbstractContextManager[None]:
        return self._modules.shown(running=True)

    def _still_running(self) -> Report:
        return self._known("not reached", "the script is still running, after {}")

    def _known(self, status: Status = "failed", end: str = UNFINISHED) -> Report:
        """Return what is known while the script runs; `status` and `end`: of the last stage."""
        faults = len(self._run.faults)
        with self._shown():
            trainings = self._run.reports(complete=False)
            ran = duration(time.monotonic() - self._started)
            report = merged(f"running {self._script.name}, {ran}", trainings, policy=self._options.policy)
            del self._run.faults[faults:]  # an error that matters comes again
            steps = count_of(self._progress.steps, "optimizer step")
            stage = StageResult("end of the run", status, end.format(steps))
            return dataclasses.replace(
                report,
                stages=(*report.stages, stage),
                script=self._script.name,
                settings=(*self._options.settings, *report.settings),
                ignored_in_vain=(),
            )

    def _work(self) -> None:
        """Do between two steps what the options ask for. Raises TrainingStopped."""
        report = self._known()
        self._tell(report)
        if self._progress.steps >= EARLIEST:
            self._stop(report)

    def _tell(self, report: Report) -> None:
        """Write the report so far, and send the alerts."""
        with contextlib.suppress(Exception), self._shown():
            self._delivery.keep(report)
        if self._options.alerts:
            self._alerts.send(report.findings)

    def _stop(self, report: Report | None = None) -> None:
        """End the script by TrainingStopped if a finding is bad enough."""
        if self._options.stop_on is not None:
            report = self._known() if report is None else report
            stop_at(self._options.stop_on, report, lambda: self._stopping(report))

    def _stopping(self, report: Report) -> str:
        """Save the batch with NaN or infinity, and the report; return what to say of it."""
        self._tell(report)
        self._stopped = f"stopped by --stop-on {self._options.stop_on}"
        if report.failed is None:
            return ""
        file = self._options.batch_file.with_name(self._options.batch_file.name + report.failed.ending)
        try:
            report.failed.save(file)
        except InvalidInput as reason:
            said = str(reason)
        except Exception as fault:  # the disk is full
            said = f"The batch was not saved: {message_of(fault)}"
            with contextlib.suppress(OSError):
                file.unlink()
        else:
            said = f"The batch is in {file}."
        self._stopped += f". {said}"
        return said

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
            looked = self._run.look_again(self._options.second_look, ran, complete)
        trainings = self._run.reports(complete)
        explained, faults = None, [*self._run.faults, *filter(None, [self._alerts.fault])]
        with _fault_kept(faults, "reading the source"):
            trainings = self._with_source(trainings)
        with _fault_kept(faults, "comparing the trainings"):
            trainings = without_bad_trials(trainings)
        reports: list[Report] = []
        for extra in self._extras:
            with _fault_kept(faults, "joining what was found beside the trainings"):
                reports += extra.reports(ending, self._run.loops.backward_passes)
                faults += extra.faults
        if others := any(extra.stopped for extra in self._extras):
            self._stopped = self._stopped or f"stopped by --stop-on {self._options.stop_on}"
        if ending.error is not None and _is_crash(ending.error) and not others:
            with _fault_kept(faults, "explaining the exception"):
                explained = explanation_of(ending.error)
        for each in reversed(reports):
            explained = _joined(explained, each)
        report = merged(self._title(ending, ran), trainings, explained, policy=self._options.policy, faults=faults)
        in_others = seconds_of_children() - self._in_others
        stages = (*report.stages, *(stage for each in reports for stage in each.stages))
        old = [StageResult(name, "not judged", why) for name, why in self._run.unsupported.items()]
        stages = (*stages, *old) or (nothing_trained(self._run.loops.backward_passes, in_others),)
        stages = (*stages, *([short_trainings(self._run.loops.short)] if self._run.loops.short else []))
        stages = (*stages, *([] if looked is None else [looked]))
        if self._stopped:
            stages = (*stages, StageResult("end of the run", "stopped", self._stopped))
        found = [rule for f in report.findings for rule in (f.rule, *(c.rule for c in f.consequences))]
        if self._options.replay_on_cpu and "asynchronous-error" in found:
            again = (
                self._again(trainings) if self._is_alone else StageResult("run again", "not judged", ONE_OF_MANY)
            )
            stages = (*stages, again)
        report = dataclasses.replace(
            report,
            stages=stages,
            script=self._script.name,
            exit_code=ending.exit_code,
            verbose=self._options.verbose,
            settings=(*self._options.settings, *report.settings),
            library_messages=self._run.library_messages,
        )
        late: list[str] = []
        with _fault_kept(late, "quoting the script"):
            report = with_code(report, self._script.file, self._folder, self._began)
        report = dataclasses.replace(report, faults=(*report.faults, *late))
        for extra in self._extras:
            report = extra.completed(report)
        return report

    def _with_source(self, trainings: list[TrainingReports]) -> list[TrainingReports]:
        """Evaluate the rules on what stands in the script's source, for the last training of those watched."""
        file, watched = self._script.file, [t for t in trainings if t.watched is not None]
        if file is None or not watched or watched[-1].watched is None:
            return trainings
        tree, values = parsed(file), vars(sys.modules["__main__"])
        patterns = tuple(patterns_of(files_of(file, self._script.folder)))
        written = WrittenPatterns(patterns)
        if tree is not None:
            pairs = tuple(compared_pairs(tree, shorten(file), values))
            written = WrittenPatterns(patterns, pairs, tuple(reshaped_arrays(tree, shorten(file), values)))
        only = trainings[0].examined if len(trainings) == 1 else None  # of several, any may have made the answers
        report = with_source(watched[-1].watched, written, () if only is None else only.facts)
        seen = dataclasses.replace(watched[-1], watched=report)
        return [seen if training is watched[-1] else training for training in trainings]

    def _again(self, trainings: Sequence[TrainingReports]) -> StageResult:
        """Run the script once more on the CPU, where the traceback ends at the failing line."""
        courses = [t.watched.history for t in trainings if t.watched is not None and t.watched.history is not None]
        steps = max((course.steps.total_steps for course in courses), default=0)
        patience = PATIENCE_S + SLOWER * (time.monotonic() - self._started)
        try:
            again = run_again(self._script.command, self._folder, steps, patience, self._run.loops.save_batches)
        except KeyboardInterrupt:
            return StageResult("run again", "not judged", "interrupted")
        return StageResult("run again", "stopped" if again.failed else "passed", again.summary)

    def _title(self, ending: Ending, ran: float) -> str:
        if isinstance(ending.error, SyntaxError) and ending.error.__traceback__ is None:
            return f"{self._script.name} does not compile, and was not run"
        titles = [extra.title for extra in self._extras if extra.title]
        parts = [f"ran {self._script.name}", *titles, duration(ran)]
        if self._limits.reached is not None:
            parts.append(f"stopped after the limit of {self._limits.reached}")
        elif self._stopped:
            parts.append(self._stopped.partition(".")[0])
        elif ending.exit_code or ending.abrupt:
            parts.append(f"exit code {ending.exit_code}")
        return ", ".join(parts)


def _joined(explained: Report | None, beside: Report) -> Report:
    """Add what was found beside the trainings to the report of the exception that ended the script, if any."""
    if explained is None:
        return dataclasses.replace(beside, stages=())
    return dataclasses.replace(
        explained,
        findings=(*beside.findings, *explained.findings),
        judged=explained.judged | beside.judged,
        not_applicable={**beside.not_applicable, **explained.not_applicable},
        faults=(*explained.faults, *beside.faults),
    )


@contextmanager
def _fault_kept(faults: list[str], work: str) -> Iterator[None]:
    """Keep an error of this library among the faults: it must not prevent the report."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        faults.append(f"{work} failed: {type(fault).__name__}: {message_of(fault)}")


def _is_crash(error: BaseException) -> bool:
    """Whether an exception that ended the script is to be explained."""
    return error.__traceback__ is not None and not isinstance(error, TrainingStopped)


def _ended_by_itself(ending: Ending) -> bool:
    """Whether nothing cut the script off: an assertion on its results comes after its training."""
    if ending.interrupted or ending.exit_code >= 128:
        return False
    return ending.error is None or isinstance(ending.error, AssertionError)
