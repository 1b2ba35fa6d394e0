"""What the reader gets: findings, the stages that were walked, and what could not be judged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from diagnostics.engine.finding import SEVERITIES, Finding, Severity
from diagnostics.errors import FindingsPresent, InvalidInput

from .whole_file import write_whole

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from diagnostics.facts.crash import CrashFacts
    from diagnostics.facts.nonfinite import OriginFacts
    from diagnostics.facts.training import RangeFacts, TraceFacts, TrainingHistory
    from diagnostics.failed_batch import FailedBatch

JSON_VERSION = 1

Status = Literal["passed", "stopped", "failed", "not judged", "not reached"]


@dataclass(frozen=True)
class StageResult:
    """How one stage of the walk went.

    Attributes:
        status: ``passed``; ``stopped``: a finding of severity error ends the walk here; ``failed``: it could
            not run at all, for a reason that no rule knows; ``not judged``: left out, for the stated reason;
            ``not reached``.
        detail: what was seen, or why not.
    """

    name: str
    status: Status
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """What was found, in the order of importance.

    Attributes:
        title: what was looked at.
        findings: errors first, then warnings, then notes; within each, in the order of the pipeline.
        stages: the walk through the pipeline, if there was one.
        not_applicable: why, by rule, for the rules whose evidence was not there.
        judged: the rules that had their evidence; those of them without a finding found all well.
        crash: the exception that was explained, if there was one.
        faults: what went wrong in this library itself; training is never disturbed by it.
        script: what was run, if it was run by `diagnose run`.
        exit_code: of that script.
        ignored: rule to reason, of rules that found something which is not told.
        ignored_in_vain: rules that were to be ignored, and found nothing.
        history: the course of a watched run, step by step; not in the JSON report, and neither is what follows.
        origin: where its first NaN or inf came from.
        ranges: how large its activations became.
        traces: every module's call in the steps that were to be traced.
        failed: the batch in which NaN or inf first appeared; see `batch`.
    """

    title: str
    findings: tuple[Finding, ...] = ()
    stages: tuple[StageResult, ...] = ()
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    judged: frozenset[str] = frozenset()
    crash: CrashFacts | None = None
    faults: tuple[str, ...] = ()
    script: str | None = None
    exit_code: int | None = None
    ignored: Mapping[str, str] = field(default_factory=dict)
    ignored_in_vain: tuple[str, ...] = ()
    # Not compared: arrays have no one answer to whether they are equal.
    history: TrainingHistory | None = field(default=None, compare=False)
    origin: OriginFacts | None = field(default=None, compare=False)
    ranges: RangeFacts | None = field(default=None, compare=False)
    traces: tuple[TraceFacts, ...] = field(default=(), compare=False)
    failed: FailedBatch | None = field(default=None, compare=False)

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

    def raise_if(self, severity: Severity = "error") -> None:
        """Raise `FindingsPresent` if there is a finding at least as bad as `severity`.

        Raises:
            InvalidInput: `severity` is not one of error, warning, note.
        """
        if severity not in SEVERITIES:
            raise InvalidInput(f"raise_if() was given {severity!r}; it takes one of: {', '.join(SEVERITIES)}.")
        bad = [f for f in self.findings if SEVERITIES.index(f.severity) <= SEVERITIES.index(severity)]
        if bad:
            names = ", ".join(finding.rule for finding in bad)
            raise FindingsPresent(f"{self.title}: {names}\n\n{self}")

    def batch(self) -> FailedBatch:
        """Return the batch in which NaN or inf first appeared, as the model was called with it.

            batch = report.batch()
            model(*batch.args, **batch.kwargs)      # once more
            batch.save("batch.pt")                  # for another day; nothing is written otherwise

        Raises:
            InvalidInput: all stayed finite, or the report is not of a watched run.
        """
        if self.failed is None:
            raise InvalidInput(
                "batch() knows of no batch: no loss and no gradient of this run was seen to be NaN or infinite."
                if self.history is not None
                else "batch() is for the report of a watched run, and this one is not."
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
            "crash": self.crash
            and {
                "exception": self.crash.exception,
                "message": self.crash.message,
                "frames": [vars(frame) for frame in self.crash.frames],
            },
            "faults": list(self.faults),
            "ignored": dict(self.ignored),
            "ignored_in_vain": list(self.ignored_in_vain),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the report as a JSON object; NaN and infinities, which JSON does not have, as text."""
        return json.dumps(_plain(self.as_dict()), indent=indent, allow_nan=False)

    def save(self, path: str | Path) -> Path:
        """Write the report to a file: ``.json`` for programs, ``.txt`` for people, ``.html`` with charts.

        The HTML is one file that fetches nothing, to be opened in any browser or sent to a colleague. A file of
        that name is replaced whole, or stays as it was.

        Raises:
            OSError: the file cannot be written.
            InvalidInput: the file's name ends in something else.
        """
        target = Path(path)
        writers = {".json": self.to_json, ".txt": self.__str__, ".html": self._page}
        if target.suffix not in writers:
            raise InvalidInput(f"save() was given {str(path)!r}; the name must end in {', '.join(writers)}.")
        write_whole(target, writers[target.suffix]() + "\n")
        return target

    def _page(self) -> str:
        from diagnostics.report.html.page import page

        return page(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from .terminal import render

        yield from render(self, options.max_width)

    def __str__(self) -> str:
        from .terminal import as_text

        return as_text(self)

    __repr__ = __str__


def _plain(value: Any) -> Any:
    """Turn a value into what JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, str | int) else str(value)
