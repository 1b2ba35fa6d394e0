"""`diagnose gpu`: lists the processes on each GPU, and reports problems."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diagnostics.facts.gpu import CardFacts, Holder, in_bytes
from diagnostics.report.report import Report
from diagnostics.text.join import count_of

if TYPE_CHECKING:
    from rich.console import RenderableType

UNSEEN = "?"  # of a process in another container or of another user


def look_at_cards(library: Any = None) -> tuple[tuple[CardFacts, ...], Report]:
    """Return all GPUs, and a report on how their memory is used.

    Args:
        library: a module with the interface of `pynvml`; `pynvml` itself if None.

    Raises:
        NoCards: there is no GPU, or no driver to query; see `collectors.system.nvml`.
    """
    from diagnostics.collectors.system.nvml import cards
    from diagnostics.report.build import evaluated, finished, new_evaluator

    found = cards(library)
    report = Report(f"checked {count_of(len(found), 'GPU')}")
    for card in found:
        evaluator = new_evaluator()  # one per GPU: a rule can have a finding for each
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
    """Render each GPU with the processes on it."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from diagnostics.text.visible import visible

    parts: list[RenderableType] = []
    for card in cards:
        free = f"{in_bytes(card.free)} of {in_bytes(card.total)} free"
        parts.append(Text(f"GPU {card.index}  {card.name}  {free}", style="bold"))
        if not card.holders:
            parts.append(Padding(Text("no processes", style="dim"), (0, 0, 1, 2)))
            continue
        table = Table("process", "user", "memory", "share", "framework", box=None, pad_edge=False, expand=True)
        table.add_column("command", ratio=1, no_wrap=True, overflow="ellipsis")  # the remaining width
        for holder in card.holders:
            # Text, because another user's command line may contain markup or control sequences.
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
        " ".join((holder.command or UNSEEN).split()),  # with `python -c` it may be a whole program
    )
