"""What a report says: findings, stages, and the rules that could not be checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from diagnostics.engine.finding import SEVERITIES, Finding
from diagnostics.errors import InvalidInput
from diagnostics.text.join import count_of

from .answers import Answer, answers
from .step_times import times_as_dict

if TYPE_CHECKING:
    from diagnostics.facts.batch_view import BatchView
    from diagnostics.facts.crash import CrashFacts
    from diagnostics.facts.layers import RangeFacts
    from diagnostics.facts.library_messages import LibraryMessage
    from diagnostics.facts.nonfinite import OriginFacts
    from diagnostics.facts.over_time import FixedBatchFacts, LayerHistograms
    from diagnostics.facts.ranks.notes import RankNotes
    from diagnostics.facts.step_times import StepTimes
    from diagnostics.facts.training import TraceFacts, TrainingHistory
    from diagnostics.failed_batch import FailedBatch

    from .fingerprint import TrainingFingerprint

JSON_VERSION = 1

Status = Literal["passed", "stopped", "failed", "not judged", "not reached"]


@dataclass(frozen=True)
class StageResult:
    """The outcome of one stage of an examination.

    Attributes:
        status: ``passed``; ``stopped``: a finding of severity error ends the examination here; ``failed``: it
            could not run, for a reason that no rule knows; ``not judged``: skipped, for the stated reason;
            ``not reached``.
        detail: a summary, or the reason.
    """

    name: str
    status: Status
    detail: str = ""


@dataclass(frozen=True)
class ReportContents:
    """All findings, in order of importance.

    Attributes:
        title: what was examined, watched or explained.
        findings: errors first, then warnings, then notes; within each, in the order of the pipeline.
        stages: of an examination, or the parts of a watched run.
        not_applicable: the reason, by rule, for the rules without their evidence.
        judged: the rules that had their evidence; those without a finding are clean.
        clean: the checks that had their evidence and found nothing, as ``rule.method``; of several trainings,
            those that were clean in each.
        crash: the exception that was explained, if there was one.
        faults: errors in this library itself; they never affect training.
        script: the script that `diagnose run` ran.
        exit_code: of that script.
        ignored: rule to reason, of ignored rules that had a finding.
        ignored_in_vain: ignored rules without a finding.
        known: the rules of findings that the baseline holds, and that are left out here.
        settings: mistakes in the project's pyproject.toml, whose entries were left out, and in comments.
        rank: what this rank noted, for `diagnose join`; None if it trained alone.
        library_messages: warnings and log lines of libraries that the script's run showed.
        time: of the parts of a training step; None if too few steps were seen.
        saved_answers: of a report that was read from a file, whose run is not known.
        fingerprints: what `diagnose diff` compares, of each watched training.
        history: of a watched run, step by step; not in the JSON report, and neither are the following.
        origin: where its first NaN or inf came from.
        ranges: of its activations.
        traces: every module call in the traced steps.
        failed: the batch in which NaN or inf first appeared; see `batch`.
        fixed_batch: the looks at a batch, if `watch` was given one.
        histograms: of weights and gradients, by step, if `watch` was asked for them.
        batches: the first batch of the training, and of its evaluation, as far as they were seen.
        verbose: whether a terminal shows every stage, and each rule that could not be checked.
        facts: for the rules that judge examination and run together; see `judged_as_a_whole`.
    """

    title: str
    findings: tuple[Finding, ...] = ()
    stages: tuple[StageResult, ...] = ()
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    judged: frozenset[str] = frozenset()
    clean: frozenset[str] = frozenset()
    crash: CrashFacts | None = None
    faults: tuple[str, ...] = ()
    script: str | None = None
    exit_code: int | None = None
    ignored: Mapping[str, str] = field(default_factory=dict)
    ignored_in_vain: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    rank: RankNotes | None = None
    library_messages: tuple[LibraryMessage, ...] = ()
    time: StepTimes | None = None
    saved_answers: tuple[Answer, ...] = ()
    fingerprints: tuple[TrainingFingerprint, ...] = ()
    # Not compared: whether arrays are equal has no single answer.
    history: TrainingHistory | None = field(default=None, compare=False)
    origin: OriginFacts | None = field(default=None, compare=False)
    ranges: RangeFacts | None = field(default=None, compare=False)
    traces: tuple[TraceFacts, ...] = field(default=(), compare=False)
    failed: FailedBatch | None = field(default=None, compare=False)
    fixed_batch: FixedBatchFacts | None = field(default=None, compare=False)
    histograms: tuple[LayerHistograms, ...] = field(default=(), compare=False)
    batches: tuple[BatchView, ...] = field(default=(), compare=False, repr=False)
    verbose: bool = field(default=False, compare=False)
    facts: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda finding: SEVERITIES.index(finding.severity))
        object.__setattr__(self, "findings", tuple(ordered))

    @property
    def ok(self) -> bool:
        """No error, no warning, no crash, and no stage that could not run."""
        return (
            not any(finding.severity != "note" for finding in self.findings)
            and not any(stage.status in ("failed", "stopped") for stage in self.stages)
            and self.crash is None
        )

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What a script's run established, and what is unknown; empty if it failed or did not train."""
        if self.script is None or self.history is None or self.crash is not None:
            return self.saved_answers
        return answers(self.findings, self.clean)

    def batch(self) -> FailedBatch:
        """Return the batch in which NaN or inf first appeared, as the model was called with it.

            batch = report.batch()
            model(*batch.args, **batch.kwargs)      # once more
            batch.save("batch.pt")                  # nothing is written otherwise

        Raises:
            InvalidInput: all stayed finite, or the report is not of a watched run.
        """
        if self.failed is None:
            raise InvalidInput(
                "batch() has no batch: every known loss and gradient of this run was finite."
                if self.history is not None
                else "batch() needs the report of a watched run, and this report is not one."
            )
        return self.failed

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, in the layout of the JSON report."""
        return {
            "version": JSON_VERSION,
            "script": self.script,
            "exit_code": self.exit_code,
            "ok": self.ok,
            "title": self.title,
            "stages": [vars(stage) for stage in self.stages],
            "findings": [finding.as_dict() for finding in self.findings],
            "not_applicable": sorted(self.not_applicable),
            "reasons": dict(sorted(self.not_applicable.items())),
            "answers": [vars(answer) for answer in self.answers],
            "crash": self.crash
            and {
                "exception": self.crash.exception,
                "message": self.crash.message,
                "frames": [vars(frame) for frame in self.crash.frames],
            },
            "faults": list(self.faults),
            "ignored": dict(self.ignored),
            "ignored_in_vain": list(self.ignored_in_vain),
            "known": list(self.known),
            "settings": list(self.settings),
            "rank": None if self.rank is None else self.rank.as_dict(),
            "library_messages": [message.as_dict() for message in self.library_messages],
            "time": None if self.time is None else times_as_dict(self.time),
            "fingerprint": {
                "environment": dict(self.fingerprints[-1].environment),
                "trainings": [one.as_dict() for one in self.fingerprints],
            }
            if self.fingerprints
            else None,
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the report as a JSON object; NaN and infinities, which JSON does not have, as text."""
        return json.dumps(_plain(self.as_dict()), indent=indent, allow_nan=False)


def severity_counts(findings: Sequence[Finding]) -> list[str]:
    """Return how many findings there are of each severity, the worst first: ``1 error``, ``2 warnings``."""
    counts = {severity: sum(one.severity == severity for one in findings) for severity in SEVERITIES}
    return [count_of(count, severity) for severity, count in counts.items() if count]


def _plain(value: Any) -> Any:
    """Convert a value to one that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, str | int) else str(value)
