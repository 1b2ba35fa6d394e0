"""Remembers the batch that a DataLoader gave last, and finds the DataLoader of a batch."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, Subset

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.discover.probes.row_order import CollatedItems
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.where import Where

SAMPLED = 1024  # numbers of a tensor that are compared, spread evenly
MAX_TENSORS = 8  # tensors of a batch; in a larger one what belongs together is not known


class LatestBatch:
    """Holds the tensors of one batch by weak references: nothing is kept alive.

    Attributes:
        source: a number that identifies the loader's dataset; 0 before the first batch.
        base: likewise for the dataset that it is a subset of.
        opens: whether the batch is the first of a loader that goes through its dataset in order.
    """

    def __init__(self) -> None:
        self._given: tuple[weakref.ref[Tensor], ...] = ()
        self.source = self.base = 0
        self.opens = False

    def gives(self, batch: Any, dataset: Any, opens: bool = False) -> None:
        """Take the batch that a loader of this dataset gives.

        Args:
            batch: that it gives.
            dataset: of the loader.
            opens: see the class.
        """
        self.source, self.opens = id(dataset), opens
        while type(dataset) is Subset:
            dataset = dataset.dataset
        self.base = id(dataset)
        found = tensors(batch)
        self._given = tuple(map(weakref.ref, found)) if 1 < len(found) <= MAX_TENSORS else ()

    def labels_beside(self, arguments: Any) -> Tensor | None:
        """Return the only tensor of integers (rows,) or (rows, 1) in the batch beside the arguments of a model.

        Args:
            arguments: of the call, which hold a tensor of the batch, or a copy of one on a device.

        Returns:
            None without one, or with several: then it is unknown which of them holds the labels.
        """
        rows, beside = self._beside(arguments)
        labels = [
            one
            for one in beside
            if not one.is_floating_point() and one.ndim in (1, 2) and len(one) == one.numel() == rows
        ]
        return labels[0] if len(labels) == 1 else None

    def target_beside(self, arguments: Any, output: Tensor) -> Tensor | None:
        """Return the only tensor in the batch beside the arguments of a model that may be its output's target.

        Args:
            arguments: as of `labels_beside`.
            output: of the call, shape (rows, ...).

        Returns:
            A tensor with the sizes of the output, but for axes of size 1; None without one, or with several.
        """
        _, beside = self._beside(arguments)
        sizes = [size for size in output.shape if size != 1]
        found = [one for one in beside if [size for size in one.shape if size != 1] == sizes]
        return found[0] if len(found) == 1 else None

    def _beside(self, arguments: Any) -> tuple[int, list[Tensor]]:
        """Return the rows of the arguments, and the batch's tensors beside them; none if they hold none of it."""
        if not self._given:
            return 0, []
        there = [tensor for reference in self._given if (tensor := reference()) is not None]
        given = tensors(arguments)
        beside = [one for one in there if not any(_may_be(one, other) for other in given)]
        if len(beside) == len(there) or not given or not given[0].ndim:
            return 0, []
        return len(given[0]), beside


def _may_be(one: Tensor, other: Tensor) -> bool:
    """Whether a tensor is another, shares its memory, or may have been moved to where that is."""
    if one is other:
        return True
    if one.device == other.device:
        return bool(one.numel() == other.numel() and one.data_ptr() == other.data_ptr())
    return bool(one.shape == other.shape)


latest_batch = LatestBatch()


class BatchSource:
    """Records the iterations of loaders: the first batch of each, until the third.

    The second may be asked for before the first is used, as by Accelerate, or to copy it to a device meanwhile.

    Attributes:
        where: the line of the script that began the latest iteration; None if there was none.
    """

    def __init__(self) -> None:
        # The loader of each iteration that has returned no batch yet.
        self._begun: IdentityMap[Any, DataLoader[Any]] = IdentityMap()
        self._first: tuple[DataLoader[Any], Any] | None = None
        self._is_ahead = False  # whether the second batch was given
        self.items = CollatedItems()
        self.where: Where | None = None

    def begins(self, iterator: Any, loader: DataLoader[Any]) -> None:
        """Record a new iteration."""
        self._begun[iterator] = loader
        self.where = script_line()
        self.items.watch(loader, iterator)

    def gives(self, batch: Any, iterator: Any) -> None:
        """Record a batch, if it is the first of its iteration."""
        loader = self._begun.pop(iterator, None)
        in_order = loader is not None and type(loader.sampler) is SequentialSampler
        latest_batch.gives(batch, getattr(iterator, "_dataset", None), opens=in_order)
        if loader is not None:
            self._first, self._is_ahead = (loader, batch), False
        elif self._is_ahead:
            self.forget()
        else:
            self._is_ahead = True

    def latest(self) -> DataLoader[Any] | None:
        """Return the loader whose first batch was recorded last, if its third was not given yet."""
        return None if self._first is None else self._first[0]

    def forget(self) -> None:
        """Drop the batch."""
        self._first = None
        self.items.forget()

    def source(self, seen: Iterable[Tensor]) -> tuple[DataLoader[Any], Any] | None:
        """Return the loader and the batch that contained one of these tensors, compared by value."""
        if self._first is None:
            return None
        loader, batch = self._first
        given = tensors(batch)
        return (loader, batch) if any(_same(one, other) for one in seen for other in given) else None


class RememberedLoader:
    """A loader that is not kept alive.

    Where a script re-creates its loader for each epoch, and keeps the dataset, one of the same kind is made.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = weakref.ref(loader)
        self._dataset: weakref.ref[Any] | None = None
        self._batch_size, self._shuffled = loader.batch_size, type(loader.sampler) is RandomSampler
        if type(loader) is DataLoader and type(loader.sampler) in (RandomSampler, SequentialSampler):
            with contextlib.suppress(TypeError):  # a list, say
                self._dataset = weakref.ref(loader.dataset)

    def get(self) -> DataLoader[Any] | None:
        """Return it; None if the script has dropped its dataset, too."""
        loader, dataset = self._loader(), None if self._dataset is None else self._dataset()
        if loader is not None or dataset is None:
            return loader
        return DataLoader(dataset, batch_size=self._batch_size, shuffle=self._shuffled)


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers in the same order, whatever their shape, dtype and device."""
    if one.numel() != other.numel() or one.numel() < 2 or {one.layout, other.layout} != {torch.strided}:
        return False
    if one.device == other.device and one.data_ptr() == other.data_ptr():
        return True
    first, second = (_sample(tensor) for tensor in (one, other))
    return bool((first == second).all()) and bool((first != first[0]).any())


def _sample(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1)[:: -(-tensor.numel() // SAMPLED)].cpu().double()
