"""Reads rows through a DataLoader's own dataset and collator, without moving its place."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader

from diagnostics.collectors.pytorch.data import rows_at
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.shared.dataset_rows import fresh_iterator, is_iterable_only, private
from diagnostics.collectors.shared.pipeline import CannotJudge, users_code
from diagnostics.collectors.shared.reread import deep_copy
from diagnostics.errors import InvalidInput

from .sources import chunks, drawn
from .table import Pair, split_pair


def loader_pairs(loader: Any) -> Generator[Pair]:
    """Read batches: of rows drawn from all over a dataset with an index, of the first ones otherwise.

    Raises:
        InvalidInput: the rows can be read only once.
        UsersCodeRaised: the dataset or the collator raised.
    """
    try:
        yield from seeded(loader, map(split_pair, _batches(loader)))
    except CannotJudge as reason:
        raise InvalidInput(f"baselines() cannot read this data: {reason}.") from None


def seeded(data: Any, pairs: Iterator[Pair]) -> Generator[Pair]:
    """Read pairs with all random generators seeded, and restored in the end: rows may be augmented."""
    with random_states_kept(data):
        yield from pairs


def _batches(loader: Any) -> Iterator[Any]:
    if not isinstance(loader, DataLoader) or type(loader).__iter__ is not DataLoader.__iter__:
        yield from _guarded(fresh_iterator(loader, "data"))
        return
    together, size = loader._auto_collation, loader.batch_size or 1
    if is_iterable_only(loader.dataset):
        rows = _guarded(fresh_iterator(loader.dataset, "dataset"))
        while part := list(islice(rows, size if together else 1)):
            with users_code():
                yield loader.collate_fn(deep_copy(part) if together else part[0])
        return
    with users_code():
        known = getattr(loader.sampler, "indices", range(len(loader.dataset)))
        dataset = private(loader.dataset)
    for places in chunks(drawn(len(known)), size if together else 1):
        with users_code():
            rows_read = rows_at(dataset, [known[p] for p in places] if together else known[places[0]], together)
            batch = loader.collate_fn(deep_copy(rows_read))
        yield batch


def _guarded(iterator: Iterator[Any]) -> Iterator[Any]:
    """Iterate, marking what is raised as the user's."""
    while True:
        with users_code(), contextlib.suppress(StopIteration):
            yield next(iterator)
            continue
        return
