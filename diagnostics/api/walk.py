"""The walk through the stages of a pipeline, with the rules evaluated at each."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, get_args

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.engine.finding import Finding
from diagnostics.errors import message_of, typed_message
from diagnostics.report.contents import StageResult, Status
from diagnostics.report.report import Report

if TYPE_CHECKING:
    from diagnostics.collectors.shared.pipeline import Pipeline
    from diagnostics.engine.evaluate import Evaluator
    from diagnostics.facts.batch_view import BatchView
    from diagnostics.facts.crash import CrashFacts
    from diagnostics.facts.pipeline import BatchFacts, Fact

OVERFIT = "one-batch overfit"
OURS = "an error in diagnostics itself; see below"


class Walk:
    """Evaluates the rules on a pipeline, stage by stage; its reports are not yet grouped by cause.

    Args:
        pipeline: the pipeline to walk through.
        check_reproducible: whether to run one step twice.

    Attributes:
        pipeline: the same pipeline.
        verb: what is done with the pipeline, for the title of the report.
        stages: by name, in order; each yields its facts.
        evaluator: evaluates the rules.
    """

    verb = "examined"

    def __init__(self, pipeline: Pipeline, check_reproducible: bool = False) -> None:
        from diagnostics.facts.pipeline import Fact
        from diagnostics.facts.trials import ReproductionFacts
        from diagnostics.report.build import new_evaluator

        self.pipeline = pipeline
        self.evaluator = new_evaluator()
        self._seen = seen = _SeenBatch()
        self.stages: dict[str, Callable[[], Iterator[Fact]]] = {
            "dataset": pipeline.dataset,
            "batch": partial(seen.of, pipeline, self.evaluator.faults),  # not of `self`: that would be a cycle
            "forward and loss": pipeline.forward,
            "backward": pipeline.backward,
            "optimizer step": pipeline.optimizer_step,
            OVERFIT: pipeline.overfit,
            "evaluation metric": pipeline.evaluation,
        }
        self._kinds = set(get_args(Fact))
        if check_reproducible:
            self.stages["reproducibility"] = pipeline.reproduction
        else:
            self._kinds.remove(ReproductionFacts)
        self._results: dict[str, StageResult] = {}
        self._findings: list[Finding] = []
        self._crash: CrashFacts | None = None

    def report(self) -> Report:
        """Walk from the first stage to the last, or to the first error."""
        pipeline = self.pipeline
        with own_run(), pipeline.untouched():
            for name in self.stages:
                if any(result.status in ("stopped", "failed") for result in self._results.values()):
                    self._results[name] = StageResult(name, "not reached")
                else:
                    self._run(name, to_the_end=name == "forward and loss" and pipeline.forward_is_harmless)
        ended_early = any(result.status in ("stopped", "failed") for result in self._results.values())
        if ended_early and pipeline.awaits_end:  # the pipeline is let go, so nothing can be done at the end
            pipeline.awaits_end = False
            self._results[OVERFIT] = StageResult(OVERFIT, "not reached")
        report = self._report()
        if ended_early:
            # An exception and its frames refer to each other, so the copy and the batch would stay in memory until
            # the next garbage collection; and memory may be what ran out.
            self.pipeline, self.stages = None, {}  # type: ignore[assignment]
            del pipeline
            gc.collect()
        return report

    def overfit_now(self) -> Report:
        """Return the report, including the overfitting test that the pipeline has postponed."""
        with own_run(), self.pipeline.untouched():
            self._run(OVERFIT, after_training=True)
        return self._report()

    def without_overfit(self, why: str) -> Report:
        """Return the report, with the reason why the postponed overfitting test is not needed."""
        self._results[OVERFIT] = StageResult(OVERFIT, "not judged", why)
        return self._report()

    def _run(self, name: str, to_the_end: bool = False, after_training: bool = False) -> None:
        with _shown(name):
            stage = self.stages[name]
            result, found, self._crash = _run_stage(name, stage, self.evaluator, to_the_end, after_training)
        self._results[name] = result
        self._findings += found

    def _report(self) -> Report:
        from diagnostics.facts.data import DatasetFacts, DatasetLength
        from diagnostics.facts.loss_call import LossCalls
        from diagnostics.facts.loss_graph import LossGraph
        from diagnostics.facts.pipeline import GradientFacts, LossFacts, ModelFacts, OptimizerFacts, OutputFacts
        from diagnostics.facts.trials import TrialFacts
        from diagnostics.report.build import evaluated

        return evaluated(
            f"{self.verb} {self.pipeline.name}",
            self.evaluator,
            self._findings,
            self._kinds,
            stages=tuple(self._results.values()),
            crash=self._crash,
            batches=self._seen.views,
            facts=(
                *self.evaluator.known(
                    DatasetFacts,
                    DatasetLength,
                    OutputFacts,
                    LossFacts,
                    LossCalls,
                    LossGraph,
                    TrialFacts,
                    ModelFacts,
                    OptimizerFacts,
                    GradientFacts,
                ),
                *self._seen.rows,
            ),
        )


class _SeenBatch:
    """Keeps a few rows of the batch that an examination sees.

    Attributes:
        views: of it, to show; none where the settings say so.
        rows: the first ones, for rules that judge them when the run is over.
    """

    def __init__(self) -> None:
        self.views: tuple[BatchView, ...] = ()
        self.rows: tuple[BatchFacts, ...] = ()

    def of(self, pipeline: Pipeline, faults: list[str]) -> Iterator[Fact]:
        """Yield the facts of the stage, the batch with its vocabulary."""
        from diagnostics.collectors.shared.batch_view import examined_batch, first_rows
        from diagnostics.config import shows_batch
        from diagnostics.facts.pipeline import BatchFacts

        for fact in pipeline.batch():
            if isinstance(fact, BatchFacts) and not self.rows:
                try:
                    views, fact = examined_batch(fact, pipeline.data_sources(), shows_batch())
                    self.views, self.rows = views, (first_rows(fact),)
                except Exception as fault:  # the rules do not need it
                    faults.append(f"showing the batch failed: {type(fault).__name__}: {message_of(fault)}")
            yield fact


def _run_stage(
    name: str,
    stage: Callable[[], Iterator[Fact]],
    evaluator: Evaluator,
    to_the_end: bool = False,
    after_training: bool = False,
) -> tuple[StageResult, list[Finding], CrashFacts | None]:
    """Run one stage to its end or to the first error; return its outcome, the findings, and a crash if any.

    With `to_the_end` it continues after an error: another rule may find more about the same bug. An exception
    `after_training` is no finding: the training has run the same code without it.
    """
    from diagnostics.collectors.crash.read import facts_of_exception
    from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, UsersCodeRaised
    from diagnostics.report.stage_summary import line

    from .explain import fault_of_ours

    findings: list[Finding] = []
    facts: list[Fact] = []
    why: str | None = None
    crash: CrashFacts | None = None
    status: Status = "passed"
    try:
        for fact in stage():
            facts.append(fact)
            findings += evaluator.add(fact)
            if not to_the_end and _has_error(findings):
                break
    except CannotJudge as reason:
        status, why = "not judged", str(reason)
    except StageFailed as reason:
        status, why = "failed", str(reason)
    except (UsersCodeRaised, SystemExit) as raised:
        cause = raised.__cause__ or raised
        if (fault := fault_of_ours(cause)) is not None:
            evaluator.faults.append(fault)
            return StageResult(name, "not judged", OURS), [*findings, *evaluator.close_phase()], None
        if after_training:
            why = f"a copy of the model could not be trained: {typed_message(cause)}"
            return StageResult(name, "not judged", why), [*findings, *evaluator.close_phase()], None
        crash, *symptoms = facts_of_exception(cause)
        findings += evaluator.add(crash, *symptoms)
        status, why = "failed", f"{crash.exception}: {crash.first_line}"
    except Exception as fault:  # an error of this library: a line in the report, never raised
        evaluator.faults.append(f"the stage {name!r} failed: {type(fault).__name__}: {message_of(fault)}")
        return StageResult(name, "not judged", OURS), [*findings, *evaluator.close_phase()], None
    findings += evaluator.close_phase()
    if _has_error(findings) and (status != "failed" or crash is not None):
        status, crash = "stopped", None
    return StageResult(name, status, line(facts) if why is None else why), findings, crash


def _has_error(findings: list[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


@contextmanager
def _shown(stage: str) -> Iterator[None]:
    """Show the current stage on a terminal; print nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"examining: {stage}"):
        yield
