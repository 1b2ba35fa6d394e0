"""Facts about failures outside of the training code: the installation, worker processes, launchers, ranks."""

from __future__ import annotations

from diagnostics.facts.frozen import frozen


@frozen
class LauncherTail:
    """A launcher reports that a process failed, and not why.

    Attributes:
        launcher: ``torchrun``, ``accelerate``, ``torch.multiprocessing``, ``srun``, ``mpirun``.
        rank: the process that failed first; None if unknown.
        exit_code: of it, negative for a signal; None if unknown.
    """

    launcher: str
    rank: int | None = None
    exit_code: int | None = None


@frozen
class WaitingRank:
    """A rank that says in a log which collective it gave up.

    Attributes:
        operation: ``ALLREDUCE``.
        number: of the collective, counted by the communication library on each rank.
        elements: number of elements that it puts in; None if unknown.
    """

    rank: int
    operation: str
    number: int
    elements: int | None = None


@frozen
class CollectiveTimeoutCrash:
    """A collective or a rendezvous was given up after its time limit.

    Attributes:
        rank: that gave up; None if unknown.
        operation: ``ALLREDUCE``; None if unknown.
        number: of the collective, counted by the communication library; None if unknown.
        seconds: time limit; None if unknown.
        joined: processes that came to a rendezvous, and how many were expected; None if it was no rendezvous.
        waiting: the ranks whose messages the same text holds, in order, the first collective of each.
    """

    rank: int | None = None
    operation: str | None = None
    number: int | None = None
    seconds: float | None = None
    joined: tuple[int, int] | None = None
    waiting: tuple[WaitingRank, ...] = ()


ProcessSymptom = LauncherTail | CollectiveTimeoutCrash
