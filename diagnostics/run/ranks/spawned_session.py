"""One rank that a script has started by `torch.multiprocessing.spawn`, up to the end of its process."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.util import Finalize

from diagnostics.errors import TrainingStopped
from diagnostics.facts.ranks.notes import RankNotes
from diagnostics.facts.ranks.stall import StallFacts
from diagnostics.report.report import Report
from diagnostics.report.whole_file import write_whole
from diagnostics.run.library_frames import without_library_frames
from diagnostics.run.options import Launch, RunOptions
from diagnostics.run.output import rehearse
from diagnostics.run.script import Ending
from diagnostics.run.session import RunSession

from .delivery import RankDelivery
from .exchange import Exchange, Rank
from .launched import LaunchedRank
from .replicas import ReplicaObserver

LAST = -1_000  # after what the script itself has left to be done at the end of the process


class SpawnedSession(RunSession):
    """A rank, whose report goes to a file for the process that started it. It prints nothing."""

    def __init__(self, number: int, launch: Launch) -> None:
        """Prepare."""
        rank = Rank(number, launch.world, launch.world)
        options = RunOptions(
            kind="json",
            output=rank.file(launch.folder / "report.json"),
            fail_on="never",
            policy=launch.policy,
            quiet=True,
            second_look=0,
            stop_on=launch.stop_on,
            batch_file=rank.file(launch.batch_file),
        )
        exchange = Exchange(rank, launch.folder / "exchange")
        delivery = FileDelivery(options, rank, exchange)
        super().__init__(
            launch.script, options, delivery, [SpawnedRank(rank, exchange, delivery, launch.stall_timeout)]
        )
        self._launches = launch.folder.parent

    def begin(self) -> None:
        """Observe until the process ends.

        SIGTERM ends it at once, without a report: who has started the ranks ends those that wait for one that has
        failed, and waits for them.
        """
        rehearse("json")
        self._observe()
        if self._options.stop_on is not None:
            self._progress.__enter__()
        Finalize(None, self._end, exitpriority=LAST)

    def _stop(self, report: Report | None = None) -> None:
        """See `RunSession`. The report is left at once: when the first rank has ended, PyTorch ends the others."""
        with _sigterm_postponed():
            try:
                super()._stop(report)
            except TrainingStopped as stopped:
                self._conclude(Ending(1, stopped))
                raise

    def _end(self) -> None:
        """Leave the report for who has started the ranks, or nothing if that was killed and will not read it."""
        ending = _ending(sys.exc_info()[1])
        try:
            if _launcher_lives() and not self._delivery.begun:
                self._conclude(ending)
        finally:
            if not _launcher_lives():
                shutil.rmtree(self._launches, ignore_errors=True)


class SpawnedRank(LaunchedRank):
    """This process as a rank that the script started."""

    def _noted(
        self, replicas: ReplicaObserver, ending: Ending, backward_passes: int, stalled: StallFacts | None
    ) -> RankNotes:
        notes = super()._noted(replicas, ending, backward_passes, stalled)
        if notes.model or (self._stall is not None and self._stall.made) or _is_in_a_group():
            return notes
        return dataclasses.replace(notes, iterations=(), batches=0)  # each trains for itself


class FileDelivery(RankDelivery):
    """Writes the report for the process that has started the ranks, and prints none."""

    def keep(self, report: Report) -> None:
        """Write nothing yet: a rank that is ended by the others leaves no report."""

    def deliver(self, report: Report) -> None:
        """Write the report to its file."""
        self.begun = True
        if self._options.output is not None:
            with contextlib.suppress(OSError):  # nobody waits for it any more
                write_whole(self._options.output, report.rendered("json") + "\n")


@contextlib.contextmanager
def _sigterm_postponed() -> Iterator[None]:
    """Let SIGTERM wait, unless the script has a handler of its own."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    arrived = list[int]()
    signal.signal(signal.SIGTERM, lambda number, _frame: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if arrived:
            os.kill(os.getpid(), signal.SIGTERM)


def _ending(error: BaseException | None) -> Ending:
    if isinstance(error, SystemExit) and error.code == 1 and isinstance(error.__context__, Exception):
        error = error.__context__  # PyTorch has caught it, and hands on its text
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return Ending(0)
    if isinstance(error, SystemExit):
        return Ending(error.code if isinstance(error.code, int) else 1)
    without_library_frames(error)
    return Ending(1, error)


def _launcher_lives() -> bool:
    launcher = multiprocessing.parent_process()
    return launcher is None or launcher.is_alive()


def _is_in_a_group() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return bool(distributed is not None and distributed.is_available() and distributed.is_initialized())
