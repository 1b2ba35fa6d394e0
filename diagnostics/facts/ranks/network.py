"""Facts about the network between the ranks of a job, from trying it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from diagnostics.facts.crash import KnownFailure
from diagnostics.facts.frozen import frozen

STEPS: Final = (
    "device",
    "rendezvous",
    "roll call",
    "connections",
    "group",
    "barrier",
    "all-reduce",
    "exchange",
    "bandwidth",
)
"""What each rank tries, in order. It stops at the first that fails."""

Kind = Literal[
    "",
    "unresolved",
    "refused",
    "no answer",
    "elsewhere",
    "port taken",
    "not a store",
    "store gone",
    "claimed twice",
    "too few GPUs",
    "no interface",
    "stuck",
    "wrong sum",
]


@frozen
class NetworkFailure:
    """What failed on one rank.

    Attributes:
        step: one of `STEPS`.
        kind: ``unresolved``: the name of MASTER_ADDR has no address. ``refused``: nothing listens there. ``no
            answer``: no packet came back within the limit. ``elsewhere``: MASTER_ADDR is no address of rank
            0's host. ``port taken``: another program listens on MASTER_PORT
            of rank 0's host. ``not a store``: something else than rank 0 answers. ``store gone``: rank 0's store
            no longer answers. ``claimed twice``: another process has this rank's number. ``too few GPUs``: the
            host has no GPU of that number. ``no interface``: the named interface is not there. ``stuck``: a call
            did not return within the limit. ``wrong sum``: an all-reduce gave a wrong result. Empty: `text` says
            it.
        text: the error's text, or details; one line.
        peer: the other rank, of a pair.
        known: what the table of messages says of `text`; None if it does not know it.
    """

    step: str
    kind: Kind
    text: str = ""
    peer: int | None = None
    known: KnownFailure | None = None


@frozen
class RankFacts:
    """One rank that came, as it described itself.

    Attributes:
        number: from 0.
        host: name of its machine.
        pid: process.
        device: ``cpu``, or ``cuda:1 (NVIDIA H100)``; empty before it was asked.
        interface: that it reaches the others by, with its address: ``eth0 10.0.0.2``; empty if unknown.
        addresses: of all interfaces of its host.
        resolved: what its own host name resolves to, which gloo takes; empty if it does not resolve.
        versions: by package or library: ``torch``, ``NCCL``.
        begun: the last step that it began; empty if none.
        passed: the steps that ended well.
        failures: in order.
        ending: of its process, if it ended before its last step: ``exit code 1``, ``SIGKILL``, ``ended``.
        networks: what the communication library's log says that it uses.
    """

    number: int
    host: str
    pid: int
    device: str = ""
    interface: str = ""
    addresses: tuple[str, ...] = ()
    resolved: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    begun: str = ""
    passed: tuple[str, ...] = ()
    failures: tuple[NetworkFailure, ...] = ()
    ending: str = ""
    networks: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Render as `rank 1 (node-b, process 4711)`."""
        return f"rank {self.number} ({self.host}, process {self.pid})"


@frozen
class Bandwidth:
    """An all-reduce that was timed.

    Attributes:
        size: of the tensor in bytes.
        seconds: for one all-reduce.
        link: bytes per second that the interface of rank 0 is made for; None if the system does not say.
    """

    size: int
    seconds: float
    link: float | None = None


@frozen
class NetworkFacts:
    """A job's ranks, and how far each came with `STEPS`.

    Attributes:
        launcher: ``torchrun``, ``srun``, ``mpirun``, or empty for processes of our own.
        world: number of ranks that the launcher speaks of.
        address: where they meet: ``node-a:29500``.
        backend: ``gloo``, ``nccl``; empty before it was chosen.
        limit: seconds for each step.
        ranks: those that came, in order; only one if the others are not known to it.
        missing: numbers of the ranks that did not come within the limit; empty as well if that is not known.
        claims: by rank, the processes that took its number, where these are several.
        bandwidth: None if it was not reached.
        viewpoint: the rank that reports: 0, or one that could not reach it; None if all are children of ours.
    """

    described = "the ranks of a job, as diagnose network sees them"

    launcher: str
    world: int
    address: str
    backend: str
    limit: float
    ranks: tuple[RankFacts, ...]
    missing: tuple[int, ...] = ()
    claims: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    bandwidth: Bandwidth | None = None
    viewpoint: int | None = None

    def rank(self, number: int) -> RankFacts | None:
        """Return the rank of that number; None if it did not come."""
        return next((rank for rank in self.ranks if rank.number == number), None)
