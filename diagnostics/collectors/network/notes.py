"""What one rank writes down while it tries the network, for its parent process and for rank 0."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import IO, Any

from .rendezvous import Board, one_line


class Notes:
    """Tells each change at once: a rank that is killed or hangs has said before where it was.

    A line of JSON for each change goes to the parent process, and the latest to the store, once there is one.

    Attributes:
        state: JSON values: see `read.rank_facts`.
        since: when the step began, or its last call.
    """

    def __init__(self, events: IO[str], rank: int) -> None:
        self._events, self._rank = events, rank
        self._board: Board | None = None
        self._lock = threading.RLock()
        self.since = time.monotonic()
        self.state: dict[str, Any] = {"rank": rank, "begun": "", "passed": [], "failures": [], "over": False}

    def tell(self, **changes: Any) -> None:
        """Write down some values of the state."""
        with self._lock:
            self.state.update(changes)
            line = json.dumps(self.state)
            with contextlib.suppress(OSError):
                self._events.write(f"{line}\n")
                self._events.flush()
            if self._board is not None:
                self._to_store(self._board, line)

    def tell_others(self, others: dict[int, Any]) -> None:
        """Hand the notes of all ranks to the parent process."""
        with self._lock, contextlib.suppress(OSError):
            self._events.write(f"{json.dumps({'others': others})}\n")
            self._events.flush()

    def go_on(self) -> None:
        """Give the step its whole time again: what it does next is another call."""
        self.since = time.monotonic()

    def begin(self, step: str) -> None:
        """Write down that a step begins."""
        self.go_on()
        self.tell(begun=step)

    def passed(self, step: str) -> None:
        """Write down that a step ended well."""
        self.tell(passed=[*self.state["passed"], step])

    def failed(self, step: str, kind: str, text: str = "", peer: int | None = None) -> None:
        """Write down a failure; only the first of each kind and pair."""
        failure = {"step": step, "kind": kind, "text": text, "peer": peer}
        with self._lock:
            known = {(one["step"], one["kind"], one["peer"]) for one in self.state["failures"]}
            if (step, kind, peer) not in known:
                self.tell(failures=[*self.state["failures"], failure])

    def share(self, board: Board) -> None:
        """Write to the store, too, from now on."""
        self._board = board
        self.tell(shared=True)

    def _to_store(self, board: Board, line: str) -> None:
        try:
            board.write(self._rank, line)
        except Exception as error:
            self._board = None
            self.state["shared"] = False
            self.failed(self.state["begun"], "store gone", one_line(error))
