"""The program of the child process in which one rank tries the network.

Its parent writes a line of JSON, a `Spec`, to its standard input, and keeps that open for as long as it lives.
What the child has to say goes line by line to what was its standard output; libraries print to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO, Any

from diagnostics.collectors.network.launcher import (
    address_towards,
    chosen,
    interfaces,
    is_here,
    own_name_resolved,
    speed_of,
)

from .collectives import Collectives, Listener, WrongSum, partners, reach, reach_all
from .rendezvous import Board, Rendezvous, RendezvousFailed, one_line

GRACE_S = 3.0  # past the limit, at which a library's own time limit should have ended a call
SLOW_S = 60.0  # to allocate on a GPU for the first time: its driver may be loaded for it
ASK_S = 5.0  # for whoever holds the port of rank 0 to answer as a store
PROBE_S = 1.0  # between two looks whether a rank that says nothing is still alive
INTERFACE = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}


@dataclass(frozen=True)
class Spec:
    """What a rank is to try.

    Attributes:
        rank: from 0.
        world: number of ranks.
        local_rank: that of its GPU on its host.
        host: where the ranks meet.
        port: None if the parent will write it in a second line; 0 for any, which rank 0 then tells.
        hosts: whether this rank listens there.
        token: distinguishes this trial from others that meet at the same place.
        backend: ``gloo`` or ``nccl``; empty for NCCL if every rank has a GPU, else gloo.
        limit: seconds for each step.
    """

    rank: int
    world: int
    local_rank: int
    host: str
    port: int | None
    hosts: bool
    token: str
    backend: str
    limit: float


class Parent:
    """Lines from the parent process; this process ends when the parent does."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        os._exit(1)

    def line(self, limit: float | None = None) -> Any:
        """Return the next line's JSON; None after the limit."""
        try:
            return json.loads(self._lines.get(timeout=limit))
        except queue.Empty:
            return None


class _Stop(Exception):
    """A step failed, and has been written down."""


class Trial:
    """One rank's steps; see `diagnostics.facts.ranks.network.STEPS`."""

    def __init__(self, spec: Spec, notes: Notes, parent: Parent) -> None:
        self._spec, self._notes, self._parent = spec, notes, parent
        self._board: Board | None = None
        self._store: Any = None  # held, because rank 0 serves as long as it exists
        self._present: list[int] = []
        self._device, self._backend = "cpu", ""

    def run(self) -> None:
        """Try all steps in a thread that can be given up, and hand over what was seen."""
        self._identify()
        import torch.distributed  # noqa: F401  it takes seconds, which are no part of a step

        steps = threading.Thread(target=self._steps, daemon=True)
        steps.start()
        while steps.is_alive():
            steps.join(0.1)
            begun = self._notes.state["begun"]
            allowed = max(self._spec.limit, SLOW_S if begun == "device" else 0) + GRACE_S
            if begun and time.monotonic() - self._notes.since > allowed:
                self._notes.failed(begun, "stuck", f"{allowed:.0f} s")
                break
        self._notes.tell(over=True)
        if self._spec.rank == 0 and self._board is not None:
            self._gather(self._board)

    def _identify(self) -> None:
        self._notes.tell(
            host=socket.gethostname(),
            pid=os.getpid(),
            addresses=list(interfaces().values()),
            resolved=own_name_resolved(),
        )

    def _steps(self) -> None:
        try:
            self._step("device", self._take_device)
            self._step("rendezvous", self._meet)
            self._step("roll call", self._call_roll)
            self._step("connections", self._connect)
            if len(self._present) == self._spec.world:
                self._communicate()
        except _Stop:
            pass

    def _step(self, name: str, work: Callable[[], object]) -> None:
        """Do a step; after it, all that came so far agree whether to go on.

        Raises:
            _Stop: it failed, here or on another rank.
        """
        self._notes.begin(name)
        before = len(self._notes.state["failures"])
        try:
            work()
        except WrongSum as wrong:
            self._notes.failed(name, "wrong sum", str(wrong))
        except RendezvousFailed as reason:
            self._notes.failed(name, reason.kind, reason.text)
        except Exception as error:
            self._notes.failed(name, "", one_line(error))
        well = len(self._notes.state["failures"]) == before
        if well:
            self._notes.passed(name)
        if not self._present or self._board is None:  # nobody to agree with yet
            if not well and name != "device":
                raise _Stop
            return
        self._notes.go_on()
        try:
            self._board.post(f"{name}/{self._spec.rank}", well)
            keys = [f"{name}/{rank}" for rank in self._present]
            agreed = self._board.awaited(keys if well else [])
        except Exception as error:
            self._notes.failed(name, "store gone", one_line(error))
            raise _Stop from None
        if not well or len(agreed) < len(keys) or not all(agreed.values()):
            raise _Stop

    def _take_device(self) -> None:
        import torch

        versions = {"Python": platform.python_version(), "torch": str(torch.__version__)}
        if torch.version.cuda is not None:
            versions["CUDA"] = str(torch.version.cuda)
        cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if cards and self._spec.backend != "gloo":
            versions["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
            # A launcher may show each process no GPU but its own, which then is number 0.
            index = 0 if cards == 1 else self._spec.local_rank
            self._notes.tell(versions=versions, device=f"cuda:{index}", cards=cards)
            if index >= cards:
                self._notes.failed("device", "too few GPUs", f"{cards}")
                return
            self._device = f"cuda:{index}"
            name = torch.cuda.get_device_name(index)
            self._notes.tell(device=f"{self._device} ({name})")
        else:
            self._notes.tell(versions=versions, device="cpu", cards=0)
        if torch.ones(1024, device=self._device).sum().item() != 1024:
            raise WrongSum(f"1,024 ones on {self._device} do not add up to 1,024")

    def _meet(self) -> None:
        spec, port = self._spec, self._spec.port
        if port is None and (port := self._parent.line(spec.limit)) is None:
            raise RendezvousFailed("refused", "")
        place = Rendezvous(spec.host, port, spec.limit)
        if spec.hosts:
            try:
                self._store = place.hosted()
            except RendezvousFailed as reason:
                raise self._better(reason, place) from None
            port = self._store.port
        else:
            self._store = place.joined()
        here = self._interface(port)
        listener = Listener(spec.rank, spec.token)
        board = self._board_on(self._store)
        if (other := board.claim(spec.rank, self._who)) is not None:
            raise RendezvousFailed("claimed twice", other)
        self._board = board
        self._notes.tell(port=port, listens=[here or spec.host, listener.port])
        self._notes.share(board)
        # The library's own client of the store may wait in it, and ours must not wait with it.
        self._rendezvous = Rendezvous(spec.host, port, spec.limit)

    @property
    def _who(self) -> str:
        return f"{self._notes.state['host']}, process {os.getpid()}"

    def _board_on(self, store: Any) -> Board:
        from torch.distributed import PrefixStore

        return Board(PrefixStore(f"{self._spec.token}/notes", store), self._spec.limit)

    def _better(self, reason: RendezvousFailed, place: Rendezvous) -> RendezvousFailed:
        """Return why rank 0 cannot listen: the address is not its own, or another rank 0 does."""
        if (here := is_here(place.host)) is None:
            return RendezvousFailed("unresolved", "")
        if not here:
            return RendezvousFailed("elsewhere", "")
        self._notes.go_on()
        if reason.kind == "port taken":
            with contextlib.suppress(Exception):
                other = self._board_on(replace(place, limit=min(place.limit, ASK_S)).joined())
                if (claimed := other.claim(0, self._who)) is not None:
                    return RendezvousFailed("claimed twice", claimed)
        return reason

    def _interface(self, port: int) -> str:
        """Return the address at which others reach this rank, and write down its interface."""
        available = interfaces()
        address = address_towards(self._spec.host, port)
        variable = INTERFACE["nccl" if self._device != "cpu" else "gloo"]
        if named := os.environ.get(variable, ""):
            fitting = chosen(named, available)
            if not fitting and available:
                raise RendezvousFailed(
                    "no interface", f"{variable}={named}, but the host has only {', '.join(available)}"
                )
            address = available[fitting[0]] if fitting else address
        name = next((name for name, one in available.items() if one == address), "")
        self._notes.tell(interface=f"{name} {address}".strip(), link=speed_of(name) if name else None)
        return address

    def _call_roll(self) -> None:
        assert self._board is not None
        if self._spec.rank == 0:
            states = self._board.awaited([f"{rank}/state" for rank in range(self._spec.world)])
            present = [rank for rank in range(self._spec.world) if f"{rank}/state" in states]
            cards = [states[f"{rank}/state"]["device"].startswith("cuda") for rank in present]
            backend = self._spec.backend or ("nccl" if all(cards) else "gloo")
            devices = all("device" in states[f"{rank}/state"]["passed"] for rank in present)
            self._board.post("roll", {"present": present, "backend": backend, "devices": devices})
        roll = self._board.awaited(["roll"], self._spec.limit + GRACE_S / 2).get("roll")
        if roll is None or self._spec.rank not in roll["present"]:
            raise RendezvousFailed("", "rank 0 called the roll without this rank")
        self._backend = roll["backend"]
        self._notes.tell(backend=self._backend, present=roll["present"])
        self._present = roll["present"]
        self._peers = {rank: self._board.state(rank) or {} for rank in self._present}
        self._devices = roll["devices"]

    def _connect(self) -> None:
        spec = self._spec
        peers = [(rank, *state["listens"]) for rank, state in self._peers.items() if rank != spec.rank]
        for one in reach_all(peers, spec.token, spec.limit):
            self._notes.failed("connections", one.kind, one.text, one.peer)

    def _communicate(self) -> None:
        if not self._devices:  # of all ranks: a group would wait for one that cannot come
            return
        spec = self._spec
        self._step("group", self._make_group)
        self._step("barrier", self._group.barrier)
        self._step("all-reduce", self._group.all_reduce)
        self._step("exchange", self._exchange)
        self._step("bandwidth", self._measure)
        if spec.world > 1:
            self._group.close()

    def _make_group(self) -> None:
        from torch.distributed import PrefixStore

        spec = self._spec
        store = PrefixStore(f"{spec.token}/group", self._rendezvous.joined())
        self._group = Collectives(self._backend, store, spec.rank, spec.world, self._device, spec.limit)

    def _exchange(self) -> None:
        for partner in partners(self._spec.rank, self._spec.world):
            self._notes.go_on()
            try:
                self._group.exchange(partner)
            except Exception as error:
                self._notes.failed("exchange", "", one_line(error), partner)
                return

    def _measure(self) -> None:
        size, seconds = self._group.timed_all_reduce()
        self._notes.tell(bandwidth=[size, seconds])

    def _gather(self, board: Board) -> None:
        """Hand the notes of all ranks to the parent, once they are complete or the limit has passed."""
        until, probed = time.monotonic() + self._spec.limit, 0.0
        present = self._present or [rank for rank in range(self._spec.world) if rank]
        states: dict[int, dict[str, Any]] = {}
        while True:
            try:
                states = {rank: state for rank in present if (state := board.state(rank)) is not None}
            except Exception:  # the launcher's store is gone
                return
            open_ = [rank for rank, state in states.items() if not state["over"] and rank != 0]
            late = time.monotonic() > until
            if open_ and time.monotonic() - probed > PROBE_S:
                probed = time.monotonic()
                for rank in open_:
                    if self._has_ended(rank, states[rank]):
                        states[rank]["ending"] = "ended"
                open_ = [rank for rank in open_ if "ending" not in states[rank]]
            if not open_ or late:
                break
            time.sleep(0.1)
        states[0] = self._notes.state
        claims = {rank: board.claims(rank) for rank in range(self._spec.world)}
        self._notes.tell(claims={rank: who for rank, who in claims.items() if len(who) > 1})
        self._notes.tell_others(states)

    def _has_ended(self, rank: int, state: dict[str, Any]) -> bool:
        if "listens" not in state:
            return False
        address, port = state["listens"]
        unreached = reach(rank, address, port, self._spec.token, PROBE_S)
        return unreached is not None and unreached.kind == "refused"


def main() -> None:
    """Try the network as the parent says, and end without waiting for any thread."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # NCCL writes its log to standard output
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the parent ends this process
    parent = Parent()
    spec = Spec(**parent.line())
    notes = Notes(events, spec.rank)
    code = 0
    try:
        Trial(spec, notes, parent).run()
    except BaseException:  # a fault of our own: into the log
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)


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
