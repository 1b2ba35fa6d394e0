"""Facts about failures outside of the training code: the installation, worker processes, launchers, ranks."""

from __future__ import annotations

from typing import Literal

from diagnostics.facts.frozen import frozen


@frozen
class InstallationCrash:
    """Installed packages, driver and GPU do not fit together.

    Attributes:
        kind: ``no kernels``: this build has none for this GPU. ``old driver``: the driver is older than the CUDA
            runtime. ``no driver``: there is none. ``cpu build``: PyTorch was built without CUDA. ``cudnn``:
            another cuDNN is loaded than PyTorch was built with. ``gpu checkpoint``: a checkpoint of GPU tensors is
            loaded where no GPU is usable. ``binary``: two packages were compiled for different versions.
            ``numpy``: a package was compiled for another NumPy. ``missing package``: an optional dependency is not
            installed. ``no triton``: torch.compile finds no Triton.
        said: the words that gave it away.
    """

    kind: Literal[
        "no kernels",
        "old driver",
        "no driver",
        "cpu build",
        "cudnn",
        "gpu checkpoint",
        "binary",
        "numpy",
        "missing package",
        "no triton",
    ]
    said: str


@frozen
class WorkerCrash:
    """A process of a data loader, or one that the script started, failed.

    Attributes:
        kind: ``pickle``: an object could not be sent to it. ``main guard``: it started the script again. ``cuda
            fork``: it was forked after CUDA was initialised. ``files``: too many open files. ``exited``: it ended
            without an exception. ``signal``: a signal ended it. ``spawned``: it ended while it was being started.
        what: the object that cannot be pickled, or the signal; None if unknown.
    """

    kind: Literal["pickle", "main guard", "cuda fork", "files", "exited", "signal", "spawned"]
    what: str | None = None


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


@frozen
class UnusedParametersCrash:
    """DistributedDataParallel waits for gradients that never come.

    Attributes:
        rank: that says so; None if unknown.
        parameters: names, or numbers in the order of `parameters()`; empty if unknown.
    """

    rank: int | None = None
    parameters: tuple[str, ...] = ()


ProcessSymptom = InstallationCrash | WorkerCrash | LauncherTail | CollectiveTimeoutCrash | UnusedParametersCrash
