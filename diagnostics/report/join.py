"""Joins the reports of a job's ranks afterwards, where they could not be compared while they ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diagnostics.engine.finding import SEVERITIES, Finding
from diagnostics.errors import InvalidInput, TrainingStopped
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.report.contents import StageResult, Status
from diagnostics.text.join import capitalized, count_of, listed

from .build import finished
from .ranks import compared, restarts_before
from .report import Report
from .saved import check_version, finding_of, read_json

MAX_LINES = 16  # ranks with a line of their own, and ranks that are named
OF_STALLS = ("mismatched-collective", "stalled-rank")
HOW = "diagnose run --output report.json writes one for each rank under a launcher"


@dataclass(frozen=True)
class RankReport:
    """The report of one rank, as it was read.

    Attributes:
        file: that it stands in.
        notes: of the rank.
        title: of the report.
        script: that was run.
        findings: all, also those that follow from others.
        judged_by_none: reasons, by rule.
        faults: errors of this library.
    """

    file: Path
    notes: RankNotes
    title: str
    script: str | None
    findings: tuple[Finding, ...]
    judged_by_none: Mapping[str, str]
    faults: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether the script of the rank failed."""
        return self.notes.exit_code != 0


def join_reports(folder: Path) -> Report:
    """Compare the ranks of a job, and return one report with the findings of all.

    Args:
        folder: with the JSON reports of the ranks, also in folders of it; other JSON files are left out.

    Raises:
        InvalidInput: there is no such folder, no report of a rank in it, a file that cannot be read, two reports
            of one rank, or reports of different jobs.
    """
    return finished(joined_ranks(folder))


def joined_ranks(folder: Path) -> Report:
    """Return the same as `join_reports`, not grouped by cause yet.

    Raises:
        InvalidInput: as `join_reports`.
    """
    ranks, others = _read(folder)
    notes = [one.notes for one in ranks]
    of_all = compared(notes, with_stalls=not _know_more(ranks))
    found = {finding.rule for finding in of_all.findings}
    each = [finding for finding in _of_ranks(ranks) if finding.rule not in found]
    not_judged = {
        rule: why
        for rule, why in ranks[0].judged_by_none.items()
        if all(rule in one.judged_by_none for one in ranks) and rule not in of_all.judged
    }
    names = f"rank{'s' if len(ranks) > 1 else ''} {listed((one.number for one in notes), most=MAX_LINES)}"
    return Report(
        f"joined {count_of(len(ranks), 'report')}: {names} of {notes[0].world}",
        (*of_all.findings, *each),
        stages=(*_stages(ranks), *_left_out(others)),
        not_applicable=not_judged,
        judged=of_all.judged,
        faults=tuple(dict.fromkeys([*of_all.faults, *(fault for one in ranks for fault in one.faults)])),
        script=ranks[0].script,
    )


def _know_more(ranks: Sequence[RankReport]) -> bool:
    """Whether a rank has compared more stalled ranks of its host than have left a report of their own."""
    stalls = [finding for one in ranks for finding in one.findings if finding.rule in OF_STALLS]
    told = [len(finding.evidence.get("ranks", ())) for finding in stalls]
    return max(told, default=0) > sum(one.notes.stalled is not None for one in ranks)


def _read(folder: Path) -> tuple[list[RankReport], list[Path]]:
    """Return the reports by rank, of the last attempt of a job that was restarted, and the other JSON files."""
    if not folder.is_dir():
        was = "a file" if folder.exists() else "not there"
        raise InvalidInput(
            f"join was given {folder}, which is {was}. Pass the folder with the ranks' reports: {HOW}."
        )
    ranks, others = [], []
    for file in sorted(folder.rglob("*.json")):
        report = _rank_report(file)
        if report is None:
            others.append(file)
        else:
            ranks.append(report)
    if not ranks:
        seen = f"{count_of(len(others), 'JSON file')} and none is a rank's report" if others else "no JSON file"
        raise InvalidInput(f"{folder} holds {seen}. {HOW}.")
    earlier, ranks = ranks, _last_attempt(ranks)
    others += [one.file for one in earlier if one not in ranks]
    by_rank: dict[int, RankReport] = {}
    for one in ranks:
        if (first := by_rank.setdefault(one.notes.number, one)) is not one:
            raise InvalidInput(
                f"{folder} holds two reports of rank {one.notes.number}: {first.file.relative_to(folder)} and "
                f"{one.file.relative_to(folder)}. Leave the reports of one job in it, and the last of each rank."
            )
    worlds = {one.notes.world: one.file.relative_to(folder) for one in ranks}
    if len(worlds) > 1:
        told = listed(f"{world} in {file}" for world, file in worlds.items())
        raise InvalidInput(f"{folder} holds reports of different jobs: the number of ranks is {told}.")
    return [by_rank[number] for number in sorted(by_rank)], others


def _last_attempt(ranks: Sequence[RankReport]) -> list[RankReport]:
    """Return the reports of the last attempt of a job that was restarted.

    The numbers in the files' names are counted on each host for itself: a host that came later, or that only had
    to begin again with the others, has a lower one. Its report is known by the number of ranks and by its time.
    """
    last = max(ranks, key=lambda one: (restarts_before(one.file), one.notes.began))
    number, world = restarts_before(last.file), last.notes.world
    kept = [
        one
        for one in ranks
        if restarts_before(one.file) == number
        and (one.notes.world == world or not 0 < one.notes.ended <= last.notes.began)
    ]
    known = {one.notes.number for one in kept}
    beside = [one for one in ranks if one.notes.world == world and one.notes.ran_beside(last.notes)]
    return [*kept, *(one for one in beside if one.notes.number not in known)]


def _rank_report(file: Path) -> RankReport | None:
    """Read a file; None if it is something else than a rank's report.

    Raises:
        InvalidInput: it cannot be read.
    """
    written = read_json(file, "Copy it again, or move it away.")
    if not isinstance(written, dict) or not {"version", "findings", "rank"} <= set(written) or not written["rank"]:
        return None
    check_version(file, written, "Join")
    try:
        return RankReport(
            file,
            RankNotes.from_dict(written["rank"]),
            str(written["title"]),
            written["script"],
            tuple(_each(map(finding_of, written["findings"]))),
            dict(written["reasons"]),
            tuple(written["faults"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"{file} is no report as this diagnose writes it ({type(error).__name__}: {error}). Join with the "
            "version that wrote it."
        ) from None


def _each(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings and their consequences, each by itself."""
    for one in findings:
        yield replace(one, consequences=())
        yield from _each(one.consequences)


def _of_ranks(ranks: Sequence[RankReport]) -> list[Finding]:
    """Return each finding once, with the ranks that have it; the words are those of the first."""
    having: dict[str, list[tuple[RankReport, Finding]]] = {}
    for one in ranks:
        for rule, finding in {finding.rule: finding for finding in reversed(one.findings)}.items():
            having.setdefault(rule, []).append((one, finding))
    findings = []
    for told in having.values():
        first, finding = min(told, key=lambda pair: SEVERITIES.index(pair[1].severity))
        others = [one for one, _ in told if one is not first]
        who = first.notes.place
        if others and len(told) == len(ranks):
            who = f"all {count_of(len(ranks), 'rank')}, as {who} saw it"
        elif others:
            who = f"ranks {listed((one.notes.number for one, _ in told), most=MAX_LINES)}, as {who} saw it"
        findings.append(
            replace(
                finding,
                message=f"{capitalized(who)}: {finding.message}",
                evidence={**finding.evidence, "on_ranks": [one.notes.number for one, _ in told]},
            )
        )
    return findings


def _stages(ranks: Sequence[RankReport]) -> list[StageResult]:
    """Return a line for each rank, or for the first that failed, and one for those that are missing."""
    shown = sorted(sorted(ranks, key=lambda one: not one.failed)[:MAX_LINES], key=lambda one: one.notes.number)
    lines = [StageResult(one.notes.place, _status(one), _line(one)) for one in shown]
    if len(ranks) > len(shown):
        lines.append(StageResult("other ranks", "passed", f"{len(ranks) - len(shown)} more"))
    known = {one.notes.number for one in ranks}
    missing = [number for number in range(ranks[0].notes.world) if number not in known]
    if missing:
        names = listed(missing, most=MAX_LINES)
        lines.append(
            StageResult("missing", "not judged", f"no report of rank{'s' if len(missing) > 1 else ''} {names}")
        )
    return lines


def _line(one: RankReport) -> str:
    return "; ".join(part for part in (one.title, one.notes.error) if part)


def _status(one: RankReport) -> Status:
    if one.notes.error.startswith(f"{TrainingStopped.__name__}: "):
        return "stopped"
    return "failed" if one.failed else "passed"


def _left_out(others: Sequence[Path]) -> list[StageResult]:
    if not others:
        return []
    names = listed((file.name for file in others), most=3)
    why = "no report of a rank in the last attempt" if any(map(_is_report, others)) else "no report of a rank"
    return [StageResult("left out", "not judged", f"{names}: {why}")]


def _is_report(file: Path) -> bool:
    """Whether a file that was left out is the report of an earlier attempt."""
    return _rank_report(file) is not None
