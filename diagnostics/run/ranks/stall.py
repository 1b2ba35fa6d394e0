"""Notices in a rank that its steps do not end, and says where all ranks of the host stand.

A thread of our own looks now and then whether the main thread has moved. It is not one of `threading`: the script
cannot see it. Once the main thread has stood for a quarter of the limit, the rank writes a note to the folder of
the exchange; sooner if the script has given a process group a short time limit. The note is removed when the rank
moves on, so that only a stall that nothing ended leaves one: for the report of a rank whose communication library
gives up, which NCCL does after 10 minutes. When every rank of the host has stood for the whole limit, one of them
prints what all of their notes say.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.collectors.system.processes import other_threads, position, stand
from diagnostics.errors import message_of
from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.report.whole_file import write_whole

from .exchange import Exchange, Rank
from .replicas import ReplicaObserver

LIMIT_S = 1_200.0
"""Default of `--stall-timeout`: twice NCCL's own limit of 10 minutes, and more than a large checkpoint takes."""
NOTED_AFTER = 1 / 4  # of the limit: 5 minutes, before any library gives up
NOTED_BEFORE = 1 / 3  # of a time limit that the script sets itself, if that is sooner
LOOKS = 8  # in this time: a thread that moves is seen at two places
MOST_PAUSE_S = 5.0
FIRST_PAUSE_S = 1.0  # until the first collective: then the script's own limits are known
LINGER_S = 10.0  # for an exception that ends a stall to end the script, too: until then the note is kept
SUFFIX = ".stall"


class StallWatch:
    """Watches the main thread of this rank from `start` to `close`.

    Attributes:
        fault: of this library, after which nothing is watched; None without any.
    """

    def __init__(
        self,
        rank: Rank,
        exchange: Exchange,
        limit: float,
        on_stall: Callable[[StallFacts], object],
        replicas: ReplicaObserver | None = None,
    ) -> None:
        """Prepare.

        Args:
            rank: of this process.
            exchange: of the ranks of the host; the notes lie in its folder.
            limit: seconds.
            on_stall: called in a thread of this library, on one rank, once all have stood for the limit.
            replicas: knows the batches that the rank has had, and is told of all-reduces; None for neither.
        """
        self._replicas = replicas
        self._rank, self._exchange, self._limit, self._on_stall = rank, exchange, limit, on_stall
        self._folder = exchange.folder
        self._at_close = contextlib.ExitStack()
        self._calls: Any = None
        self._steps = 0
        self._main = threading.main_thread().ident or 0
        self._progress, self._place = (0, 0), position(self._main)
        self._moved: float | None = None  # when it left the place that its note tells; None if it stands there
        self._since = time.monotonic()
        self._noted = 0.0
        self._closed = False
        self.fault: str | None = None

    @property
    def made(self) -> int:
        """Number of collectives that the script has made."""
        return 0 if self._calls is None else int(self._calls.made)

    @property
    def _patience(self) -> float:
        """Seconds after which a rank that stands writes its note."""
        own = None if self._calls is None else self._calls.patience
        return self._limit * NOTED_AFTER if own is None else min(self._limit * NOTED_AFTER, own * NOTED_BEFORE)

    @property
    def _file(self) -> Path:
        return self._folder / f"{self._rank.number}{SUFFIX}"

    def start(self) -> None:
        """Watch from now on."""
        self._discard()
        self._at_close.callback(after_import("torch", self._with_torch))
        _thread.start_new_thread(self._look_on, ())

    def close(self) -> StallFacts | None:
        """Stop, and return the notes of all ranks if this one has made no step since it wrote its own.

        The note is left: other ranks, which end by the same stall, read it, too.
        """
        self._closed = True
        self._at_close.close()
        just_moved = self._moved is None or time.monotonic() - self._moved < LINGER_S
        return stall_facts(self._folder, self._limit) if self._noted and just_moved else None

    def _with_torch(self, torch: ModuleType) -> None:
        if not hasattr(torch, "distributed"):
            return  # the script has its own `torch.py`
        try:
            from diagnostics.collectors.pytorch.ranks.collectives import CollectiveCalls
            from diagnostics.taps.torch import optimizer_step

            self._at_close.callback(optimizer_step.after.subscribe(self._stepped))
            calls = CollectiveCalls()
            self._at_close.callback(calls.attach())
            if self._replicas is not None:
                calls.on_call = self._replicas.collective
                self._replicas.hears_collectives = True
            self._calls = calls
        except Exception as fault:
            self._failed(fault)

    def _stepped(self, *_: Any) -> None:
        self._steps += 1

    def _look_on(self) -> None:
        process = os.getpid()
        while True:
            time.sleep(min(MOST_PAUSE_S if self.made else FIRST_PAUSE_S, self._patience / LOOKS))
            if self._closed or os.getpid() != process:
                return
            try:
                self._look()
            except Exception as fault:
                self._failed(fault)
                return

    def _look(self) -> None:
        progress, place, now = (self._steps, self.made), position(self._main), time.monotonic()
        if (progress, place) != (self._progress, self._place):
            self._moved = now if self._moved is None else self._moved
            if self._noted and (progress != self._progress or now - self._moved > LINGER_S):
                self._noted = 0.0
                self._discard()
            self._progress, self._place, self._since = progress, place, now
            return
        idle = now - self._since
        if idle < self._patience:
            return
        if not self._noted or self._moved is not None or self._noted < self._limit <= idle:
            self._write(idle)
            self._noted, self._moved = idle, None
        if idle >= self._limit and self._steps:
            self._compare()

    def _write(self, idle: float) -> None:
        self._exchange.open()
        note = {"world": self._rank.world, "limit": self._limit, "rank": asdict(self._stalled(idle))}
        write_whole(self._file, json.dumps(note))

    def _stalled(self, idle: float) -> StalledRank:
        found, me = stand(self._main), threading.get_ident()
        running = None if self._calls is None else self._calls.current(self._main)
        name, shapes, group = ("", (), ()) if running is None else running
        epochs, drawn = ((), 0) if self._replicas is None else self._replicas.epochs()
        if found is not None and running is None and "_engine_run_backward" in found.functions:
            name = "backward"
        return StalledRank(
            number=self._rank.number,
            host=socket.gethostname(),
            pid=os.getpid(),
            steps=self._steps,
            idle=idle,
            made=self.made,
            collective=name,
            group=group,
            shapes=shapes,
            where=None if found is None else found.where,
            code="" if found is None else found.code,
            inside="" if found is None else found.inside,
            threads=other_threads(self._main, me),
            epochs=epochs,
            drawn=drawn,
        )

    def _compare(self) -> None:
        """Let one rank of the host report, once all of them have stood for the limit."""
        facts = stall_facts(self._folder, self._limit)
        if (
            facts is None
            or len([rank for rank in facts.ranks if rank.idle >= self._limit]) < self._rank.local_world
        ):
            return
        try:
            self._folder.joinpath("stalled").touch(exist_ok=False)
        except FileExistsError:  # another rank has reported
            return
        self._on_stall(facts)

    def _discard(self) -> None:
        for name in (self._file, self._folder / "stalled"):
            with contextlib.suppress(OSError):
                name.unlink(missing_ok=True)

    def _failed(self, fault: Exception) -> None:
        self.fault = f"watching for stalls ended: {type(fault).__name__}: {message_of(fault)}"


def stall_facts(folder: Path, limit: float) -> StallFacts | None:
    """Return what the notes in a folder say; None if there are none."""
    notes = []
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(file.read_text("utf-8"))
            notes.append((int(note["world"]), StalledRank.from_dict(note["rank"])))
    if not notes:
        return None
    ranks = sorted((rank for _, rank in notes), key=lambda rank: rank.number)
    return StallFacts(max(world for world, _ in notes), tuple(ranks), limit)
