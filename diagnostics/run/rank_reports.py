"""Reports on what several ranks have in common: a stall, a model that they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.report.report import Report, StageResult
from diagnostics.text.join import count_of


def report_of(facts: Any, title: str = "", stages: Iterable[StageResult] = ()) -> Report:
    """Return what the rules say of facts about ranks; not grouped by cause yet."""
    from diagnostics.report.build import evaluated, new_evaluator

    evaluator = new_evaluator()
    findings = [*evaluator.add(facts), *evaluator.close_phase()]
    return evaluated(title, evaluator, findings, [type(facts)], stages=tuple(stages))


def stall_report(facts: StallFacts) -> Report:
    """Return where each rank stands, and what the rules say of it; not grouped by cause yet."""
    stages = [StageResult(f"rank {rank.number}", "stopped", _described(rank)) for rank in facts.ranks]
    return report_of(facts, f"no step ends on {count_of(len(facts.ranks), 'rank')} of {facts.world}", stages)


def joined(explained: Report | None, of_ranks: Report) -> Report:
    """Add what is known of several ranks to the report of the exception that ended this one, if there was one."""
    if explained is None:
        return replace(of_ranks, stages=())
    return replace(
        explained,
        findings=(*of_ranks.findings, *explained.findings),
        judged=explained.judged | of_ranks.judged,
        not_applicable={**of_ranks.not_applicable, **explained.not_applicable},
        faults=(*explained.faults, *of_ranks.faults),
    )


def _described(rank: StalledRank) -> str:
    waits = f"in {rank.collective}" if rank.collective else ""
    shapes = f"of {', '.join(rank.shapes)}" if rank.shapes else ""
    where = f"at {rank.where}" if rank.where is not None else f"in {rank.inside}"
    code = f"({rank.code})" if rank.code else ""
    first = " ".join(part for part in (waits, shapes, where, code) if part)
    return f"{first}; {count_of(rank.steps, 'step')}, {count_of(rank.made, 'collective')}, {rank.idle:.0f} s"
