"""Groups stalled ranks by the call in which they wait."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.text.join import listed

PAIRWISE = ("send", "recv")  # between two ranks: one sends and the other receives
SAME_SHAPES = ("all_reduce", "broadcast", "reduce", "all_gather_into_tensor", "reduce_scatter_tensor")
"""Collectives that need tensors of the same shape on every rank; of the others only one rank may hold any."""
MAX_NAMED = 6


def waiting(facts: StallFacts) -> list[StalledRank]:
    """Return the ranks that wait in a collective, or in a backward pass."""
    return [rank for rank in facts.ranks if rank.collective]


def elsewhere(facts: StallFacts) -> list[StalledRank]:
    """Return the ranks outside any collective."""
    return [rank for rank in facts.ranks if not rank.collective]


def by_call(ranks: Sequence[StalledRank]) -> list[list[StalledRank]]:
    """Group ranks whose calls can match, largest group first.

    Calls match if they have the same name, and the same shapes if these must agree, wherever they are in the code.
    """
    groups: dict[tuple[object, ...], list[StalledRank]] = {}
    for rank in ranks:
        name = "send and recv" if rank.collective in PAIRWISE else rank.collective
        shapes = rank.shapes if rank.collective in SAME_SHAPES else ()
        groups.setdefault((name, shapes, rank.group), []).append(rank)
    return sorted(groups.values(), key=len, reverse=True)


def who(ranks: Sequence[StalledRank]) -> str:
    """Name ranks: ``rank 1``, ``ranks 0, 2 and 3``."""
    return f"rank{'s' if len(ranks) > 1 else ''} {listed((rank.number for rank in ranks), most=MAX_NAMED)}"


def call(rank: StalledRank) -> str:
    """Describe the call in which a rank waits, and its place: ``all_reduce of float32 [3] at train.py:31``."""
    name = "the backward pass" if rank.collective == "backward" else rank.collective
    shapes = f" of {listed(rank.shapes)}" if rank.shapes else ""
    number = "" if rank.collective == "backward" else f" (collective number {rank.made:,})"
    return f"{name}{shapes}{place(rank)}{number}"


def place(rank: StalledRank) -> str:
    """Return the line where a rank is: `` at train.py:31 in main``; empty if unknown."""
    return "" if rank.where is None else f" at {rank.where}"


def duration(seconds: float) -> str:
    """Format a duration: ``40 s``, ``20 minutes``."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
