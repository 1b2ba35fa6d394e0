"""Counts the batches of a rank's loaders, and notes the order in which they give the rows. Draws none."""

from __future__ import annotations

import weakref
import zlib
from array import array
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader, DistributedSampler, Subset

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.ranks.notes import Iteration
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

MAX_ITERATIONS = 64  # iterations that are kept, the first ones; the batches of all are counted
INDICES = 4_096  # of a subset that its checksum covers, spread evenly


class _Running:
    """An iteration over a loader."""

    def __init__(self, loader: DataLoader[Any], dataset: int, world: int) -> None:
        self.batches, self.ended, self.trained = 0, False, False
        self.first_step = self.optimizer = 0
        self.dataset, self.size = dataset, _size(loader, world)
        self.shuffled = _shuffled(loader, world)
        self.shares_out = _shares_out(loader, world)
        self.part = _checksum(loader.dataset) if self.shares_out else None

    def facts(self) -> Iteration:
        return Iteration(
            self.batches, self.ended, self.dataset, self.optimizer, self.size, self.shuffled, self.part
        )


class LoaderNotes:
    """The iterations over DataLoaders during which an optimizer stepped: those of the training rows.

    Attributes:
        fault: of this library, after which nothing more is noted; None without any.
        batches: that they have given.
        steps: of all optimizers.
    """

    def __init__(self, world: int) -> None:
        """Prepare.

        Args:
            world: number of ranks.
        """
        self.fault: Exception | None = None
        self.batches = 0
        self._world, self._guard = world, FaultGuard(on_fault=self._failed)
        self.steps, self._stepped_last = 0, 0
        self._running: IdentityMap[Any, _Running] = IdentityMap()
        self._latest: _Running | None = None
        self._trained: list[_Running] = []
        self._datasets: IdentityMap[Any, int] = IdentityMap()
        self._optimizers: IdentityMap[Any, int] = IdentityMap()
        self._numbers = {"dataset": 0, "optimizer": 0}

    def attach(self) -> Unsubscribe:
        """Note from now on; return what ends it."""
        return subscribe(
            self._safely,
            (taps.loader_iter.after, self._begin),
            (taps.loader_next.after, self._give),
            (taps.loader_next.exhausted, self._end),
            (taps.optimizer_step.after, self._stepped),
        )

    def _failed(self, fault: Exception) -> None:
        self.fault = fault

    def _safely(self, work: Callable[..., None], *arguments: Any) -> None:
        if self.fault is None:
            self._guard.attempt(work, *arguments)

    def _begin(self, iterator: Any, loader: DataLoader[Any]) -> None:
        dataset = loader.dataset
        try:
            weakref.ref(dataset)
        except TypeError:  # a list, say, which the notes would keep alive
            dataset = _sampler(loader)
        number = self._number(self._datasets, dataset, "dataset")
        self._running[iterator] = _Running(loader, number, self._world)

    def _end(self, iterator: Any) -> None:
        if (one := self._running.get(iterator)) is not None:
            one.ended = True
            self._leave(one)

    def _give(self, _batch: Any, iterator: Any) -> None:
        if (one := self._running.get(iterator)) is None:
            return
        if not one.batches:
            one.first_step = self.steps
        self._leave(one)
        one.batches += 1
        self.batches += one.trained
        self._latest = one

    def _leave(self, one: _Running) -> None:
        """Note whether there was a step since its first batch."""
        if one.batches and not one.trained and self.steps > one.first_step:
            one.trained, one.optimizer = True, self._stepped_last
            self.batches += one.batches
            if len(self._trained) < MAX_ITERATIONS:
                self._trained.append(one)
        if one.ended and self._latest is one:
            self._latest = None

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        self.steps += 1
        self._stepped_last = self._number(self._optimizers, optimizer, "optimizer")

    def _number(self, known: IdentityMap[Any, int], thing: Any, kind: str) -> int:
        number = known.get(thing)
        if number is None:
            self._numbers[kind] += 1
            number = known[thing] = self._numbers[kind]
        return number

    @property
    def shares_out(self) -> bool:
        """Whether all loaders in whose iterations it trained give each rank its share of the rows."""
        return bool(self._trained) and all(one.shares_out for one in self._trained)

    def iterations(self) -> tuple[Iteration, ...]:
        """Return the first iterations in which the rank trained, in order."""
        return tuple(one.facts() for one in self._trained)

    def epochs(self) -> tuple[tuple[int, ...], int]:
        """Return the batches of each iteration that has ended, and of the one that the script is in; 0 if in none.

        To be called from another thread, too.
        """
        latest = self._latest
        ended = tuple(one.batches for one in tuple(self._trained) if one.ended)
        return ended, latest.batches if latest is not None and latest.trained else 0


def _size(loader: DataLoader[Any], world: int) -> int | None:
    """Return the length of a subset, or what PyTorch's sampler shares out, without a call of the dataset's own."""
    dataset: Any = loader.dataset
    if _is_subset(dataset):
        return len(dataset.indices)
    sampler = _sampler(loader)
    return sampler.total_size if _of_all_ranks(sampler, world) else None


def _is_subset(dataset: Any) -> bool:
    return type(dataset) is Subset and isinstance(dataset.indices, list | tuple | range)


def _sampler(loader: DataLoader[Any]) -> Any:
    """Return what draws the rows; also where a batch sampler of the script's own holds it."""
    batches = getattr(loader, "batch_sampler", None)
    return getattr(batches, "sampler", getattr(loader, "sampler", None))


def _of_all_ranks(sampler: Any, world: int) -> bool:
    """Whether it is PyTorch's own sampler, shared out between all ranks."""
    kind = type(sampler)
    return (
        isinstance(sampler, DistributedSampler)
        and kind.__iter__ is DistributedSampler.__iter__
        and sampler.num_replicas == world
    )


def _shuffled(loader: DataLoader[Any], world: int) -> tuple[int, int] | None:
    sampler = _sampler(loader)
    if not _of_all_ranks(sampler, world) or not sampler.shuffle:
        return None
    return int(sampler.seed), int(sampler.epoch)


def _shares_out(loader: DataLoader[Any], world: int) -> bool:
    """Whether each rank gets a share of the dataset, by PyTorch's sampler or by Accelerate's."""
    batches = getattr(loader, "batch_sampler", None)
    by_accelerate = type(batches).__name__ == "BatchSamplerShard" and getattr(batches, "num_processes", 1) == world
    return by_accelerate or _of_all_ranks(_sampler(loader), world)


def _checksum(dataset: Any) -> int | None:
    """Return a checksum of a subset's indices; None for another dataset."""
    if not _is_subset(dataset):
        return None
    indices = dataset.indices
    some = array("q", [int(index) for index in indices[:: max(1, len(indices) // INDICES)]])
    return zlib.crc32(some.tobytes(), len(indices))
