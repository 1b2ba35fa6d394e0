"""One of several ranks: where they stand when no step ends, and what they have in common."""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from diagnostics.errors import typed_message
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.report.contents import StageResult
from diagnostics.report.ranks import report_of
from diagnostics.report.report import Report
from diagnostics.run.extra import Extra
from diagnostics.run.library_modules import LibraryModules
from diagnostics.run.script import Ending
from diagnostics.text.join import count_of

from .delivery import RankDelivery
from .exchange import Exchange, Rank
from .replicas import ReplicaObserver
from .stall import LIMIT_S, StallWatch

MOST_OF_ERROR = 300  # characters of its first line that a rank's notes keep


class LaunchedRank(Extra):
    """This process as a rank that a launcher such as `torchrun` started."""

    keeps_exit_code = True

    def __init__(
        self, rank: Rank, exchange: Exchange, delivery: RankDelivery, stall_timeout: float | None
    ) -> None:
        """Prepare.

        Args:
            rank: of this process.
            exchange: with the other ranks.
            delivery: prints where the ranks stand.
            stall_timeout: seconds without a step after which to say that; 0 for never, None for `LIMIT_S`.
        """
        self._rank, self._exchange, self._delivery = rank, exchange, delivery
        self._limit = LIMIT_S if stall_timeout is None else stall_timeout
        self._began = time.time()
        self._replicas: ReplicaObserver | None = None
        self._stall: StallWatch | None = None
        self._notes: RankNotes | None = None

    @property
    def title(self) -> str:
        """See `Extra`."""
        return "" if self._rank.world == 1 else f"rank {self._rank.number} of {self._rank.world}"

    @property
    def faults(self) -> Sequence[str]:
        """See `Extra`."""
        return [
            part.fault for part in (self._stall, self._replicas) if part is not None and part.fault is not None
        ]

    @property
    def on_module_call(self) -> Callable[[Any], object] | None:
        """See `Extra`."""
        return None if self._replicas is None else self._replicas.called

    def observe(self, at_close: ExitStack) -> None:
        """See `Extra`."""
        if self._rank.world > 1:
            self._replicas = ReplicaObserver(at_close, self._rank.world)

    def start(self, modules: LibraryModules) -> None:
        """Watch for steps that do not end, if there are other ranks that might wait for this one."""
        if self._rank.world > 1 and self._limit:
            self._stall = StallWatch(self._rank, self._exchange, self._limit, self._tell_stall, self._replicas)
            self._stall.start()

    def reports(self, ending: Ending, backward_passes: int) -> Sequence[Report]:
        """Return what the rules say of this rank's part in the model, and of a stall that ended the script."""
        stalled = None if self._stall is None else self._stall.close()
        if not ending.exit_code:  # a stall that passed
            stalled = None
        found = []
        if self._replicas is not None:
            self._notes = self._noted(self._replicas, ending, backward_passes, stalled)
            wrapper, made = self._replicas.facts(), None if self._stall is None else self._stall.made
            facts = [] if wrapper is None else [dataclasses.replace(wrapper, collectives=made)]
            if wrapper is not None or self._notes.iterations:
                found.append(report_of(*facts, self._notes))
        if stalled is not None:
            found.append(dataclasses.replace(_stall_report(stalled), stages=()))
        return found

    def completed(self, report: Report) -> Report:
        """Return the report with the notes of this rank, for a comparison with the others."""
        return dataclasses.replace(report, rank=self._notes)

    def _tell_stall(self, facts: StallFacts) -> None:
        """Print where all ranks stand; in another thread, while the script waits."""
        if not self._delivery.begun:
            self._delivery.print_new(_stall_report(facts))

    def _noted(
        self, replicas: ReplicaObserver, ending: Ending, backward_passes: int, stalled: StallFacts | None
    ) -> RankNotes:
        error = "" if ending.error is None else typed_message(ending.error).strip().partition("\n")[0]
        ranks = () if stalled is None else stalled.ranks
        plain = RankNotes(
            number=self._rank.number,
            world=self._rank.world,
            host=socket.gethostname(),
            backward_passes=backward_passes,
            exit_code=ending.exit_code,
            error=error[:MOST_OF_ERROR],
            stalled=next((one for one in ranks if one.number == self._rank.number), None),
            began=self._began,
            ended=time.time(),
        )
        return replicas.filled(plain)


def _stall_report(facts: StallFacts) -> Report:
    """Return where each rank stands, and what the rules say of it; not grouped by cause yet."""
    stages = [StageResult(f"rank {rank.number}", "stopped", _described(rank)) for rank in facts.ranks]
    title = f"no step ends on {count_of(len(facts.ranks), 'rank')} of {facts.world}"
    return report_of(facts, title=title, stages=stages)


def _described(rank: StalledRank) -> str:
    waits = f"in {rank.collective}" if rank.collective else ""
    shapes = f"of {', '.join(rank.shapes)}" if rank.shapes else ""
    where = f"at {rank.where}" if rank.where is not None else f"in {rank.inside}"
    code = f"({rank.code})" if rank.code else ""
    first = " ".join(part for part in (waits, shapes, where, code) if part)
    return f"{first}; {count_of(rank.steps, 'step')}, {count_of(rank.made, 'collective')}, {rank.idle:.0f} s"
