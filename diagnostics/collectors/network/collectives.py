"""What two ranks exchange on trial: plain TCP, and collectives of the library that training would use."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

SMALL = 1024  # values of a collective that is to show only that it works
FIRST_BYTES = 2**20  # of the all-reduce that is timed: what every network takes in a second
LARGE_BYTES, QUICK_S = 2**25, 0.1  # and if it took no longer than that, one that latency hardly slows
TIMES = 3
MOST_ROUNDS = 127  # of exchanges: in each every rank has one partner. NCCL makes a connection for each pair

MOST_AT_ONCE = 32
ANSWER_S = 5.0  # a peer that accepts answers at once


class WrongSum(Exception):
    """An all-reduce gave another value than the sum."""


class Collectives:
    """A process group, and what is tried with it."""

    def __init__(self, backend: str, store: Any, rank: int, world: int, device: str, limit: float) -> None:
        """Make the group."""
        import torch
        import torch.distributed as dist

        self._dist, self._torch = dist, torch
        self._backend, self._rank, self._world = backend, rank, world
        self._limit = timedelta(seconds=limit)
        self._device = torch.device(device if backend == "nccl" else "cpu")
        options = {"device_id": self._device} if self._device.type == "cuda" else {}
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=self._limit, **options)

    def barrier(self) -> None:
        """Wait for every rank."""
        if self._backend == "gloo":
            self._dist.monitored_barrier(timeout=self._limit, wait_all_ranks=True)
        else:
            self._dist.barrier(device_ids=[self._device.index])
            self._finish()

    def all_reduce(self) -> None:
        """Sum the ranks' numbers, each plus 1.

        Raises:
            WrongSum: a rank got another sum.
        """
        values = self._torch.full((SMALL,), float(self._rank + 1), device=self._device)
        self._dist.all_reduce(values)
        expected = self._world * (self._world + 1) / 2
        low, high = values.min().item(), values.max().item()
        if (low, high) != (expected, expected):
            raise WrongSum(f"the sum of 1 to {self._world} came out as {low:g} to {high:g}, not {expected:g}")

    def exchange(self, partner: int) -> None:
        """Send to a rank and receive from it."""
        mine = self._torch.full((SMALL,), float(self._rank), device=self._device)
        theirs = self._torch.empty_like(mine)
        first, second = (self._send, self._receive) if self._rank < partner else (self._receive, self._send)
        first(mine, theirs, partner)
        second(mine, theirs, partner)
        if theirs[0].item() != partner:
            raise WrongSum(f"rank {partner} sent {partner}, and {theirs[0].item():g} came")

    def _send(self, mine: Any, theirs: Any, partner: int) -> None:
        self._dist.send(mine, partner)

    def _receive(self, mine: Any, theirs: Any, partner: int) -> None:
        self._dist.recv(theirs, partner)

    def timed_all_reduce(self) -> tuple[int, float]:
        """Return bytes and seconds of one all-reduce, of a size that the network takes in a moment."""
        size = FIRST_BYTES
        seconds = self._timed(size)
        if seconds <= QUICK_S:
            size = LARGE_BYTES
            seconds = self._timed(size)
        return size, seconds

    def _timed(self, size: int) -> float:
        values = self._torch.ones(size // 4, device=self._device)
        self._dist.all_reduce(values)  # the first one sets up buffers
        self._finish()
        started = time.perf_counter()
        for _ in range(TIMES):
            self._dist.all_reduce(values)
        self._finish()
        mean = self._torch.tensor([(time.perf_counter() - started) / TIMES], device=self._device)
        self._dist.all_reduce(mean, self._dist.ReduceOp.MAX)  # all ranks decide alike by it
        return float(mean.item())

    def _finish(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)

    def close(self) -> None:
        """Leave the group."""
        self._dist.destroy_process_group()


def partners(rank: int, world: int) -> Iterator[int]:
    """Yield a rank's partner of each round, such that every two ranks meet once and none waits for a third.

    The circle method: one place stays, all others move on by one from round to round.
    """
    places = world + world % 2  # with an odd number of ranks one pauses
    for turn in range(min(places - 1, MOST_ROUNDS)):
        if rank == places - 1:
            partner = turn
        elif rank == turn:
            partner = places - 1
        else:
            partner = (2 * turn - rank) % (places - 1)
        if partner < world:
            yield partner


@dataclass(frozen=True)
class Unreached:
    """A peer that could not be reached; `kind` as in `NetworkFailure`."""

    peer: int
    kind: str
    text: str


class Listener:
    """Answers each connection with this rank's number, until the process ends."""

    def __init__(self, rank: int, token: str) -> None:
        self._rank, self._token = rank, token
        self._socket = socket.create_server(("", 0), backlog=socket.SOMAXCONN)
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection:
            connection.settimeout(ANSWER_S)
            if connection.makefile("r").readline(200).strip() == self._token:
                connection.sendall(f"{self._rank}\n".encode())

    def close(self) -> None:
        """Stop to listen."""
        self._socket.close()


def reach(peer: int, address: str, port: int, token: str, limit: float) -> Unreached | None:
    """Connect to a peer's listener and let it answer; None if it does."""
    place = f"{address}:{port}"
    try:
        with socket.create_connection((address, port), timeout=limit) as connection:
            connection.settimeout(min(limit, ANSWER_S))
            connection.sendall(f"{token}\n".encode())
            answer = connection.makefile("r").readline(200).strip()
    except ConnectionRefusedError:
        return Unreached(peer, "refused", place)
    except TimeoutError:
        return Unreached(peer, "no answer", place)
    except OSError as error:
        return Unreached(peer, "", f"{place}: {error.strerror or error}")
    return None if answer == str(peer) else Unreached(peer, "", f"{place}: another program answered")


def reach_all(peers: Iterable[tuple[int, str, int]], token: str, limit: float) -> list[Unreached]:
    """Connect to all peers at once, given rank, address and port of each; return those that were not reached."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        tried = list(pool.map(lambda one: reach(one[0], one[1], one[2], token, limit), peers))
    return [one for one in tried if one is not None]
