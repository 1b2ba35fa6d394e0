"""Reports on what several ranks have in common, from the notes of each, and the names of their files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from diagnostics.facts.ranks.notes import JoinedNotes, RankNotes
from diagnostics.facts.ranks.replicas import ReplicaFacts
from diagnostics.facts.ranks.stall import StallFacts
from diagnostics.report.contents import StageResult

from .build import evaluated, new_evaluator
from .report import Report

_RESTART = re.compile(r"\.restart(\d+)(?=\.|$)")


def report_of(*facts: Any, title: str = "", stages: Iterable[StageResult] = ()) -> Report:
    """Return what the rules say of facts about ranks; not grouped by cause yet."""
    evaluator = new_evaluator()
    findings = [*evaluator.add(*facts), *evaluator.close_phase()]
    return evaluated(title, evaluator, findings, [type(fact) for fact in facts], stages=tuple(stages))


def compared(notes: Sequence[RankNotes], *, with_stalls: bool = False) -> Report:
    """Return what the rules say of ranks side by side; not grouped by cause yet.

    Args:
        notes: of different ranks.
        with_stalls: whether to compare where they stood, too, which ranks of one host do while they run.
    """
    facts: list[Any] = [JoinedNotes({one.number: one for one in notes})]
    if (replicas := _replicas(notes)) is not None:
        facts.append(replicas)
    stalled = tuple(one.stalled for one in notes if one.stalled is not None)
    if with_stalls and stalled:
        limit = min(one.idle for one in stalled)
        facts.append(StallFacts(max(one.world for one in notes), stalled, limit))
    return report_of(*facts, title="compared the ranks")


def _replicas(notes: Sequence[RankNotes]) -> ReplicaFacts | None:
    """Return what all ranks had, if all share one model."""
    ranks = {one.number: one.samples for one in notes}
    models = {one.model for one in notes}
    if len(models) != 1 or "" in models or len(ranks) < 2 or len({one.apart for one in notes}) > 1:
        return None
    return ReplicaFacts(models.pop(), ranks, all(one.by_hand for one in notes), notes[0].apart)


def rank_file(path: Path, rank: int, restarts: int = 0) -> Path:
    """Return the file of one rank: ``report.json`` of the first, ``report.restart1.rank1.json``.

    A restart overwrites no report of the attempt that failed, which says why.

    Args:
        path: that the user gave.
        rank: from 0.
        restarts: how often the launcher has started the job again.
    """
    parts = [path.stem, *([f"restart{restarts}"] if restarts else []), *([f"rank{rank}"] if rank else [])]
    return path.with_name(".".join(parts) + path.suffix)


def restarts_before(file: Path) -> int:
    """Return how often the job had been restarted when this report was written."""
    found = _RESTART.search(file.stem)
    return int(found[1]) if found else 0
