"""Makes a batch of the first rows of a loader, through its own collator, and changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader

from diagnostics.collectors.shared.dataset_rows import EMPTY, fresh_iterator, is_iterable_only, private
from diagnostics.collectors.shared.pipeline import StageFailed, users_code
from diagnostics.collectors.shared.reread import deep_copy

from .state import random_states_kept


def first_batch(data: Any, rows: int) -> Any:
    """Return a batch of the first rows of a DataLoader, or the first batch of another iterable.

    The order is the dataset's: a sampler is not asked, unless the loader has one of its own making.

    Raises:
        CannotJudge: reading would take rows away from training.
        StageFailed: the data has no batch.
        UsersCodeRaised: the dataset or the collator raised.
    """
    with random_states_kept(data), torch.no_grad():
        if isinstance(data, DataLoader) and data._auto_collation:
            return collated(data, rows, private)
        return _first(fresh_iterator(data, "data"), 1)[0]


def collated(loader: DataLoader[Any], rows: int, reader: Callable[[Any], Any]) -> Any:
    """Collate the first rows of a loader's dataset.

    Args:
        loader: the user's.
        rows: how many, unless it has fewer.
        reader: returns what the rows of a dataset are read from.
    """
    dataset = loader.dataset
    if is_iterable_only(dataset):
        read = _first(fresh_iterator(dataset, "dataset"), rows)
    else:
        source = reader(dataset)
        with users_code():
            places = list(islice(_places(loader), rows))
            read = [source[place] for place in places]
    if not read:
        raise StageFailed(EMPTY)
    with users_code():
        return loader.collate_fn(deep_copy(read))


def _places(loader: DataLoader[Any]) -> Any:
    """Return the indices that the loader's sampler knows, in the dataset's order."""
    return getattr(loader.sampler, "indices", range(len(loader.dataset)))


def _first(iterator: Any, rows: int) -> list[Any]:
    read: list[Any] = []
    with users_code(), contextlib.suppress(StopIteration):
        while len(read) < rows:
            read.append(next(iterator))
    if not read:
        raise StageFailed("The data is empty: iterating it yielded nothing.")
    return read
