"""Reports on what several ranks have in common: a stall, a model that they share."""

from __future__ import annotations

from dataclasses import replace

from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.report.contents import StageResult
from diagnostics.report.ranks import report_of
from diagnostics.report.report import Report
from diagnostics.text.join import count_of


def stall_report(facts: StallFacts) -> Report:
    """Return where each rank stands, and what the rules say of it; not grouped by cause yet."""
    stages = [StageResult(f"rank {rank.number}", "stopped", _described(rank)) for rank in facts.ranks]
    title = f"no step ends on {count_of(len(facts.ranks), 'rank')} of {facts.world}"
    return report_of(facts, title=title, stages=stages)


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
