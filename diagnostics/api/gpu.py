"""`diagnose gpu`: who holds each card, and what is wrong with that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diagnostics.facts.gpu import CardFacts, Holder, in_bytes
from diagnostics.report.report import Report

if TYPE_CHECKING:
    from rich.console import RenderableType

UNSEEN = "?"  # of a process in another container, or another user's


def look_at_cards(library: Any = None) -> tuple[tuple[CardFacts, ...], Report]:
    """Return every card, and a report of what is wrong with how they are held.

    Args:
        library: what answers as `pynvml` does; that module itself if None.

    Raises:
        NoCards: there is no card, or nobody to ask; see `collectors.system.nvml`.
    """
    from diagnostics.collectors.system.nvml import cards
    from diagnostics.report.build import evaluated, finished, new_evaluator

    found = cards(library)
    report = Report(f"looked at {len(found)} card{'' if len(found) == 1 else 's'}")
    for card in found:
        evaluator = new_evaluator()  # a card each: a rule that one card breaks may be broken by the next
        one = evaluated(report.title, evaluator, [*evaluator.add(card), *evaluator.close_phase()], [CardFacts])
        report = replace(
            report,
            findings=(*report.findings, *one.findings),
            not_applicable={**report.not_applicable, **one.not_applicable},
            judged=report.judged | one.judged,
            faults=tuple(dict.fromkeys((*report.faults, *one.faults))),
        )
    return found, finished(report)


def tables(cards: tuple[CardFacts, ...]) -> list[RenderableType]:
    """Render each card with those that hold it."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from diagnostics.text.visible import visible

    parts: list[RenderableType] = []
    for card in cards:
        free = f"{in_bytes(card.free)} of {in_bytes(card.total)} free"
        parts.append(Text(f"GPU {card.index}  {card.name}  {free}", style="bold"))
        if not card.holders:
            parts.append(Padding(Text("nobody holds it", style="dim"), (0, 0, 1, 2)))
            continue
        table = Table("process", "user", "memory", "share", "framework", box=None, pad_edge=False, expand=True)
        table.add_column("command", ratio=1, no_wrap=True, overflow="ellipsis")  # what the others leave
        for holder in card.holders:
            # Text, for another user's command line is neither markup nor a control sequence.
            table.add_row(*(Text(visible(cell)) for cell in _row(holder, card.total)))
        parts.append(Padding(table, (0, 0, 1, 2)))
    return parts


def _row(holder: Holder, total: int) -> tuple[str, ...]:
    return (
        str(holder.pid),
        holder.user or UNSEEN,
        UNSEEN if holder.size is None else in_bytes(holder.size),
        UNSEEN if holder.size is None else f"{holder.size / total:.0%}",
        UNSEEN if holder.frameworks is None else ", ".join(holder.frameworks) or "none",
        " ".join((holder.command or UNSEEN).split()),  # of a `python -c` it may be a whole program
    )
