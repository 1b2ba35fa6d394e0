"""Finds rows that a collator, or a script, put into another order than their targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from diagnostics.collectors.pytorch.discover.step_probe import StepProbe
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.facts.array import Array
from diagnostics.facts.course import RowLedger

MIN_ROWS, MAX_ROWS = 8, 1024  # rows of a batch
NUMBERS = 4096  # of a row that are compared, evenly over it: the first ones may be a border or a margin
KNOWN = 0.8  # of the rows, that one row alone can have been
APART = 2  # targets, at least, that are another row's: one may be noise that the collator adds


class CollatedItems:
    """Keeps the examples that the first batch of a loader was made of."""

    def __init__(self) -> None:
        self.latest: list[Any] | None = None

    def watch(self, loader: Any, iteration: Any) -> None:
        """Record the examples of the next batch, if a collator of the script's own makes it, in this process."""
        if type(iteration) is not _SingleProcessDataLoaderIter or not loader._auto_collation:
            return
        fetcher: Any = iteration._dataset_fetcher
        plain = getattr(fetcher, "collate_fn", None)
        if plain is None or plain is default_collate:
            return

        def collate(items: Any) -> Any:
            fetcher.collate_fn = plain
            self.latest = list(items) if isinstance(items, list) and MIN_ROWS <= len(items) <= MAX_ROWS else None
            return plain(items)

        fetcher.collate_fn = collate

    def forget(self) -> None:
        """Drop the examples."""
        self.latest = None


class RowOrder(StepProbe):
    """Looks for rows whose inputs were moved and whose targets were not, where the loss reads both."""

    stage = "batch"

    def facts(self) -> Iterator[RowLedger | None]:
        """Yield the rows."""
        seen = self.subject.seen
        if seen.call is None or seen.batch is None or not seen.direct:
            return
        inputs = list(seen.called_with.unchanged().values())
        found = None if seen.items is None else _unpaired_by_collator(seen.items, inputs, seen.call.target)
        yield _unpaired_in_loop(seen.batch, inputs, seen.call.target) if found is None else found


def _unpaired_by_collator(items: Sequence[Any], inputs: Sequence[Tensor], target: Tensor) -> RowLedger | None:
    """Compare the examples of a batch with what a model and a loss got."""
    columns = _columns(items)
    if columns is None:
        return None
    return _unpaired(columns, inputs, target, collated=True)


def _unpaired_in_loop(batch: Any, inputs: Sequence[Tensor], target: Tensor) -> RowLedger | None:
    """Compare a batch, as a loader gave it, with what a model and a loss got."""
    rows = len(target) if target.ndim else 0
    given = [tensor for tensor in tensors(batch) if tensor.ndim and len(tensor) == rows]
    if any(_is_order(tensor) for tensor in given):
        return None
    return _unpaired([list(_flat(tensor)) for tensor in given], inputs, target, collated=False)


def _unpaired(
    columns: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], target: Tensor, collated: bool
) -> RowLedger | None:
    rows = len(target) if target.ndim else 0
    inputs = [tensor for tensor in inputs if tensor.ndim and len(tensor) == rows]
    if not MIN_ROWS <= rows <= MAX_ROWS or target.numel() != rows or any(map(_is_order, inputs)):
        return None
    wanted = _host(target.reshape(-1))
    orders = [order for tensor in inputs if (order := _order_of(columns, tensor)) is not None]
    if not orders or any(_stays(order) for order in orders):
        return None
    order = orders[0]
    for column in columns:
        if any(value.numel() != 1 for value in column):
            continue
        own = _host(torch.cat(tuple(column)))
        if Counter(own.tolist()) != Counter(wanted.tolist()):
            continue
        known = [(place, row) for place, row in enumerate(order) if row is not None]
        apart = sum(bool(wanted[place] != own[row]) for place, row in known)
        moved = sum(place != row for place, row in known)
        return RowLedger(moved=moved, unpaired=apart, collated=collated, in_batch=rows) if apart >= APART else None
    return None


def _columns(items: Sequence[Any]) -> list[list[Tensor]] | None:
    """Return the values of the examples, part by part; those that are no numbers are left out."""
    first = items[0]
    if isinstance(first, Mapping):
        parts = [[item.get(name) if isinstance(item, Mapping) else None for item in items] for name in first]
    elif isinstance(first, tuple | list):
        if any(not isinstance(item, tuple | list) or len(item) != len(first) for item in items):
            return None
        parts = [list(part) for part in zip(*items, strict=True)]
    else:
        return None
    found = []
    for part in parts:
        values = [_numbers(value) for value in part]
        if all(value is not None and value.numel() for value in values):
            found.append([value for value in values if value is not None])
    return found


def _numbers(value: Any) -> Tensor | None:
    """Return the numbers of a part of an example (n,); None if it holds something else."""
    if isinstance(value, Tensor):
        return value.detach().reshape(-1) if value.layout is torch.strided else None
    if isinstance(value, str | bytes) or value is None:
        return None
    try:
        return torch.from_numpy(np.asarray(value, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        return None


def _flat(tensor: Tensor) -> Tensor:
    rows = tensor.detach()
    return rows.reshape(len(rows), -1)


def _host(tensor: Tensor) -> Array:
    return tensor.detach().double().cpu().numpy()  # type: ignore[no-any-return]


def _order_of(columns: Sequence[Sequence[Tensor]], tensor: Tensor) -> list[int | None] | None:
    """Return which example each row of a model's input is; None where that cannot be told."""
    rows = _flat(tensor)
    every = max(1, -(-rows.shape[1] // NUMBERS))
    after = _host(rows[:, ::every])
    for column in columns:
        if len(column) != len(after) or max(value.numel() for value in column) < 2:
            continue
        values = [_host(value[::every]) for value in column]
        order: list[int | None] = []
        least = min(value.size for value in values)
        places: dict[bytes, list[int]] = {}
        for place, value in enumerate(values):
            places.setdefault((value[:least] + 0.0).tobytes(), []).append(place)
        for row in after:
            near = places.get((row[:least] + 0.0).tobytes(), [])
            alike = [place for place in near if _begins_with(row, values[place])]
            order.append(alike[0] if len(alike) == 1 else None)
        known = [row for row in order if row is not None]
        if len(known) >= KNOWN * len(order) and len(set(known)) == len(known):
            return order
    return None


def _begins_with(row: Array, value: Array) -> bool:
    """Whether a row is an example, and nothing else but one number over and over, its padding."""
    size = value.size
    if size > row.size or not np.array_equal(row[:size], value):
        return False
    return size == row.size or bool((row[size:] == row[size]).all())


def _stays(order: Sequence[int | None]) -> bool:
    return all(row is None or row == place for place, row in enumerate(order))


def _is_order(tensor: Tensor) -> bool:
    """Whether a tensor counts the rows, as what puts the answers back into their order."""
    if tensor.ndim != 1 or tensor.is_floating_point() or tensor.dtype is torch.bool:
        return False
    return bool((tensor.sort().values.cpu() == torch.arange(len(tensor))).all())
