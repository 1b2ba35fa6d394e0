"""Remembers the batch that a DataLoader of PyTorch gave last, to find what stands beside a model's input in it.

A script that only counts right answers in its evaluation calls no loss there: its labels stand in the batch.
"""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor
from torch.utils.data import Subset

from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors

MAX_TENSORS = 8  # tensors of a batch; in a larger one what belongs together is not known


class LatestBatch:
    """Holds the tensors of one batch by weak references: nothing is kept alive.

    Attributes:
        source: a number that stands for the dataset of the loader; 0 while there was no batch.
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
            None where there is none, or several: then which of them holds the labels is not known.
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
            A tensor with the sizes of the output, but for axes of size 1; None where there is none, or several.
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
