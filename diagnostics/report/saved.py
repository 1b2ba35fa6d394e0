"""Reads the JSON report of an earlier run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from diagnostics.engine.finding import Finding, Severity
from diagnostics.errors import InvalidInput
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.library_messages import LibraryMessage
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.facts.where import Where
from diagnostics.rules.registry import all_rules

from .answers import Answer
from .contents import JSON_VERSION, StageResult
from .policy import baseline_of
from .report import Report
from .step_times import times_from_dict

Parsed = TypeVar("Parsed")
HOW = "Pass what `diagnose run --output report.json` writes."


def read_json(file: Path, advice: str = HOW) -> Any:
    """Return the content of a JSON file.

    Args:
        file: to read.
        advice: what to do if it is not JSON.

    Raises:
        InvalidInput: it cannot be read, or is not JSON.
    """
    try:
        return json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # also of its encoding
        raise InvalidInput(f"{file} is not JSON: {error}. {advice}") from None


def check_version(file: Path, written: Mapping[str, Any], action: str) -> None:
    """Refuse a report of another version of the layout; `action` is what to do with the right release.

    Raises:
        InvalidInput: it has another version.
    """
    if written["version"] != JSON_VERSION:
        raise InvalidInput(
            f"{file} is a report of version {written['version']}, and this diagnose reads version {JSON_VERSION}. "
            f"{action} with the version that wrote it."
        )


def read_written(file: Path) -> dict[str, Any]:
    """Return the content of a JSON report, as `Report.as_dict` has written it.

    Raises:
        InvalidInput: the file cannot be read, is not a report, or is one of another version.
    """
    written = read_json(file)
    if not isinstance(written, dict) or not {"version", "findings", "stages"} <= set(written):
        raise InvalidInput(f"{file} is not a report of diagnose. {HOW}")
    check_version(file, written, "Read it")
    return written


def read_report(file: Path) -> Report:
    """Return the report that a file holds, without what the JSON leaves out: the course of the run and its charts.

    Raises:
        InvalidInput: as `read_written`, or a part of it has another layout.
    """
    return _parsed(file, _report)


def read_baseline(file: Path) -> dict[tuple[str, str | None], Severity]:
    """Return the findings that a file holds, as `Policy.baseline` takes them.

    Raises:
        InvalidInput: as `read_report`.
    """
    return _parsed(file, baseline_of)


def _parsed(file: Path, parse: Callable[[Mapping[str, Any]], Parsed]) -> Parsed:
    written = read_written(file)
    try:
        return parse(written)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"{file} is no report as this diagnose writes it ({type(error).__name__}: {error}). Read it with the "
            "version that wrote it."
        ) from None


def finding_of(written: Mapping[str, Any]) -> Finding:
    """Return a finding as `Finding.as_dict` has written it.

    Raises:
        KeyError, TypeError: it is something else.
    """
    where = written["where"]
    return Finding(
        rule=written["rule"],
        severity=written["severity"],
        stage=written["stage"],
        message=written["message"],
        fix=written["fix"],
        evidence=written["evidence"],
        where=None if where is None else Where(**where),
        step=written["step"],
        consequences=tuple(finding_of(one) for one in written["consequences"]),
        other_trainings=written["other_trainings"],
        alternatives=tuple(written["alternatives"]),
    )


def _report(written: Mapping[str, Any]) -> Report:
    crash, rank, time = written["crash"], written.get("rank"), written.get("time")
    # A rule that is neither here nor in a finding was judged; see report.schema.json.
    judged = {rule.name for rule in all_rules()} - set(written["not_applicable"])
    return Report(
        title=written["title"],
        findings=tuple(finding_of(one) for one in written["findings"]),
        stages=tuple(StageResult(**stage) for stage in written["stages"]),
        not_applicable=dict(written.get("reasons") or dict.fromkeys(written["not_applicable"], "")),
        judged=frozenset(judged),
        crash=crash and _crash(crash),
        faults=tuple(written["faults"]),
        script=written["script"],
        exit_code=written["exit_code"],
        ignored=dict(written["ignored"]),
        ignored_in_vain=tuple(written["ignored_in_vain"]),
        known=tuple(written.get("known", ())),
        settings=tuple(written.get("settings", ())),
        rank=None if rank is None else RankNotes.from_dict(rank),
        library_messages=tuple(
            LibraryMessage(**{**one, "where": one["where"] and Where(**one["where"])})
            for one in written.get("library_messages", ())
        ),
        time=None if time is None else times_from_dict(time),
        saved_answers=tuple(Answer(**answer) for answer in written.get("answers", ())),
    )


def _crash(written: Mapping[str, Any]) -> CrashFacts:
    frames = tuple(FrameFacts(**frame) for frame in written["frames"])
    return CrashFacts(written["exception"], written["message"], frames, live=False)
