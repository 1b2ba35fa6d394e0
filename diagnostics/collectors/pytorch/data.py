"""Takes rows and one batch from PyTorch training data without advancing the user's iterators."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from diagnostics.collectors.shared.arrays import fields, is_tensor, to_array
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, users_code
from diagnostics.collectors.shared.reread import deep_copy
from diagnostics.collectors.shared.split_overlap import input_columns, row_digest
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts

from .batch import target_name

ROWS_READ = 512  # enough for a class of 1% to be seen with probability 0.994; milliseconds on a local dataset
ROWS_READ_IN_ORDER = 64  # of an iterable, which may read from a network: a batch or two
FIRST_BATCHES = 5
SECONDS_READING = 3.0  # a dataset that decodes images may be slow; then fewer rows are read

_WHOLE = (SequentialSampler, RandomSampler, WeightedRandomSampler, DistributedSampler, SubsetRandomSampler)

EMPTY = "The training dataset is empty: it has 0 rows. There is nothing to train on."


@dataclass(frozen=True)
class Sample:
    """Rows read from a dataset. `rows` are in the order read; `size` is None if the dataset cannot tell."""

    rows: list[Any]
    size: int | None
    spread_out: bool


def not_batches(data: Any) -> str | None:
    """Say why this cannot be what a training loop reads its batches from, and what to pass; None if it can."""
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        return ", which cannot be iterated. Pass a DataLoader, or a list of batches."
    if isinstance(data, str | bytes | type) or callable(getattr(data, "keys", None)) or is_tensor(data):
        return ", which is not a series of batches. Pass a DataLoader; one batch can be passed as [batch]."
    if isinstance(data, tuple) and all(map(is_tensor, data)):
        return ", and all in it are tensors: that looks like a single batch. Pass it as [batch], or a DataLoader."
    rows = isinstance(data, Dataset) or hasattr(data, "column_names")
    if rows and not isinstance(data, IterableDataset):
        return ", which holds single rows. Pass the loader that makes batches of them: DataLoader(dataset, ...)."
    return None


def is_iterable_only(dataset: Any) -> bool:
    """Whether rows can only be had one after the other."""
    return isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")


def sample_rows(
    dataset: Any,
    limit: int = ROWS_READ,
    loader: DataLoader[Any] | None = None,
    seconds: float | None = None,
) -> Sample:
    """Read at most `limit` rows: from all over a dataset with an index, the first ones of an iterable.

    Where a loader is given, only rows that its sampler knows are read; of a sampler of the user's own kind, the
    first ones that it gives.

    Raises:
        StageFailed: the dataset is empty.
        CannotJudge: reading a row would take it away from training.
        UsersCodeRaised: the dataset raised.
    """
    if is_iterable_only(dataset):
        iterator = fresh_iterator(dataset, "dataset")
        rows, _ = _read(iterator, min(limit, ROWS_READ_IN_ORDER), seconds)
        size, spread_out = None, False
    else:
        with users_code():
            size = len(dataset)
        own_order = loader is not None and _has_own_order(loader)
        with users_code():
            if loader is None or not own_order:
                known = range(size) if loader is None else getattr(loader.sampler, "indices", range(size))
                indices: Iterable[Any] = [known[place] for place in _spread(len(known), limit)]
            else:
                indices = islice(_in_own_order(loader), limit)
        reader = private(dataset)
        rows, _ = _read((reader[index] for index in indices), limit, seconds)
        spread_out = not own_order
    if not rows:
        raise StageFailed(EMPTY)
    return Sample(rows, size, spread_out)


def _spread(length: int, limit: int) -> list[int]:
    """Choose at most `limit` places from all over a sequence, in an order whose beginning is spread as well."""
    places = np.unique(np.linspace(0, length - 1, min(limit, length)).astype(int))
    shuffled: list[int] = np.random.default_rng(0).permutation(places).tolist()
    return shuffled


def _read(rows: Iterable[Any], limit: int, seconds: float | None = None) -> tuple[list[Any], bool]:
    """Read up to `limit` rows, and say whether there was time for all of them."""
    started, seconds = time.monotonic(), SECONDS_READING if seconds is None else seconds
    read: list[Any] = []
    with users_code():
        for row in islice(rows, limit):
            read.append(row)
            if time.monotonic() - started > seconds:
                return read, False
    return read, True


def _has_own_order(loader: DataLoader[Any]) -> bool:
    """Whether rows come as a sampler decides that is not one of PyTorch's."""
    own_batches = type(loader.batch_sampler) not in (BatchSampler, type(None))
    return own_batches or type(loader.sampler) not in _WHOLE


def _in_own_order(loader: DataLoader[Any]) -> Iterator[Any]:
    """Yield what such a sampler asks for, row by row."""
    for asked in loader.sampler if loader.batch_sampler is None else loader.batch_sampler:
        yield from asked if isinstance(asked, list) else [asked]


def private(dataset: Any) -> Any:
    """Return a shallow copy of a dataset, so that what it notes on being read is not noted on the user's.

    A file that is opened on the first read must not be open when the loader's workers are forked.
    """
    if not isinstance(dataset, Dataset):
        return dataset
    try:
        if callable(getattr(dataset, "state_dict", None)):  # it knows its place, and shares it with a shallow copy
            return copy.deepcopy(dataset)
        twin = copy.copy(dataset)
        for name, value in vars(dataset).items():
            if isinstance(value, Dataset):
                setattr(twin, name, private(value))
            elif isinstance(value, list) and value and all(isinstance(part, Dataset) for part in value):
                setattr(twin, name, [private(part) for part in value])
    except Exception:  # it cannot be copied: then the user's own is read
        return dataset
    return twin


def fresh_iterator(data: Iterable[Any], what: str) -> Any:
    """Start an iteration of our own.

    Raises:
        CannotJudge: the data is its own iterator, so that reading from it would take it away from training.
    """
    kind = type(data).__name__
    if hasattr(data, "__next__"):
        raise CannotJudge(
            f"the {what} is an iterator (a {kind}): reading from it would take that away from training, so "
            "nothing was read. Pass something that can be iterated again, such as a DataLoader"
        )
    held = next((name for name, value in _attributes(data).items() if hasattr(value, "__next__")), None)
    if held is not None:
        raise CannotJudge(
            f"the {what} (a {kind}) reads from {held!r}, an iterator or an open file: reading on from there would "
            "take rows away from training, so nothing was read"
        )
    data = private(data)
    with users_code():
        iterator = iter(data)
        again = iter(data)
    if iterator is data or again is iterator:
        raise CannotJudge(
            f"the {what} (a {kind}) hands out the same iterator every time: reading from it would take rows away "
            "from training, so nothing was read"
        )
    return iterator


def _attributes(data: Any) -> dict[str, Any]:
    try:
        return dict(vars(data))
    except TypeError:  # a list has none
        return {}


def collate_batch(loader: DataLoader[Any], number: int = 0, dataset: Any = None) -> Any:
    """Build one batch, the first or a later one, as the loader would, without moving its place.

    Where it shuffles all rows, some are drawn at random, which does not take as long as to shuffle millions.

    Args:
        loader: the user's.
        number: of the batch.
        dataset: a copy of the loader's dataset to read from instead.

    Raises:
        StageFailed: it yields no batch.
    """
    size = loader.batch_size
    dataset = loader.dataset if dataset is None else dataset
    together = loader._auto_collation  # whether the sampler's answer is a list of rows to be collated

    def collate(rows: Any) -> Any:
        return loader.collate_fn(deep_copy(rows))  # it may edit them, and they may stand in the dataset

    if is_iterable_only(dataset):
        iterator = fresh_iterator(dataset, "dataset")
        with users_code():
            if not together:
                return collate(_first(islice(iterator, number, None), loader))
            rows = list(islice(iterator, number * (size or 1), (number + 1) * (size or 1)))
            there = len(rows) == size or (rows and not loader.drop_last)
            return collate(rows if there else _first(iter(()), loader))
    with users_code():
        return collate(rows_at(private(dataset), batch_indices(loader, number), together))


def batch_indices(loader: DataLoader[Any], number: int = 0) -> Any:
    """Ask the sampler which rows are to make a batch; one index where batches are not collated."""
    together = loader._auto_collation
    indices = _indices(loader, number) if together and type(loader.batch_sampler) is BatchSampler else None
    if indices is not None:
        return indices
    return _first(islice(iter(loader.batch_sampler if together else loader.sampler), number, None), loader)


def rows_at(dataset: Any, indices: Any, together: bool = True) -> Any:
    """Read rows as a loader would."""
    if not together:
        return dataset[indices]
    if getattr(dataset, "__getitems__", None):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


def _indices(loader: DataLoader[Any], number: int) -> list[int] | None:
    """Draw the rows of a batch; None where the sampler's own order is quick to have."""
    sampler, size = loader.sampler, loader.batch_size
    if _has_own_order(loader) or not getattr(sampler, "shuffle", not isinstance(sampler, SequentialSampler)):
        return None
    known: Sequence[int] = getattr(sampler, "indices", range(len(loader.dataset)))
    weights = None
    if isinstance(sampler, WeightedRandomSampler):
        weights = sampler.weights.double().cpu().numpy()
        weights = weights / weights.sum()
        known = range(len(weights))
    rows = len(known)
    if len(sampler) < (size or 1) and loader.drop_last:
        return None
    replace = bool(getattr(sampler, "replacement", False))
    different = rows if weights is None else int(np.count_nonzero(weights))
    count = min(size or 1, len(sampler), *([] if replace else [different]))
    if not count or not different:
        return None
    drawn = np.random.default_rng(number).choice(rows, count, replace=replace, p=weights)
    return [known[place] for place in drawn.tolist()]


def _first(batches: Iterator[Any], loader: DataLoader[Any]) -> Any:
    for batch in batches:
        return batch
    rows = None if is_iterable_only(loader.dataset) else len(loader.dataset)
    if loader.drop_last and rows != 0:
        count = "the rows" if rows is None else f"{rows} {'row' if rows == 1 else 'rows'}"
        raise StageFailed(
            f"The data loader yields no batch: {count} do not fill one batch of {loader.batch_size}, and "
            "drop_last=True drops what is left over."
        )
    raise StageFailed("The data loader yields no batch: its sampler gives no rows." if rows else EMPTY)


def is_shuffled(loader: Any) -> bool | None:
    """Say whether a loader draws rows in random order; None for a sampler that only its author knows."""
    if is_iterable_only(loader.dataset) or _has_own_order(loader):
        return None
    return bool(getattr(loader.sampler, "shuffle", type(loader.sampler) is not SequentialSampler))


def first_labels(dataset: Any, batch_size: int | None, seconds: float | None = None) -> tuple[Array, ...]:
    """Return the class labels of the first batches of an unshuffled dataset, each (batch_size,)."""
    if batch_size is None or is_iterable_only(dataset):
        return ()
    with users_code():
        count = min(FIRST_BATCHES * batch_size, len(dataset), ROWS_READ)
    reader = private(dataset)
    rows, complete = _read((reader[index] for index in range(count)), count, seconds)
    labels = _class_labels(rows) if rows and complete else None
    if labels is None:
        return ()
    return tuple(labels[start : start + batch_size] for start in range(0, count - batch_size + 1, batch_size))


def dataset_facts(
    sample: Sample,
    *,
    columns: Sequence[str] | None = None,
    pad_token_id: int | None = None,
    label_names: tuple[str, ...] | None = None,
    weighted_sampling: bool | None = False,
    shuffled: bool | None = None,
    first_batches: tuple[Array, ...] = (),
) -> DatasetFacts:
    """Turn rows into facts.

    Args:
        sample: the rows: dicts, or tuples whose last element is the target.
        columns: the columns that reach the collator; None: all.
        pad_token_id: id to leave out when tokens are counted.
        label_names: what the classes are called.
        weighted_sampling: see `DatasetFacts`.
        shuffled: see `DatasetFacts`.
        first_batches: see `DatasetFacts`.
    """
    first = sample.rows[0]
    all_columns = list(first) if isinstance(first, Mapping) else []
    kept = all_columns if columns is None else [name for name in all_columns if name in columns]
    return DatasetFacts(
        size=sample.size,
        rows_read=len(sample.rows),
        spread_out=sample.spread_out,
        columns=tuple(kept),
        dropped_columns=tuple(name for name in all_columns if name not in kept),
        text_columns=tuple(name for name in all_columns if isinstance(first[name], str)),
        labels=_class_labels(sample.rows),
        label_names=label_names,
        token_lengths=_token_lengths(sample.rows, pad_token_id),
        weighted_sampling=weighted_sampling,
        shuffled=shuffled,
        first_batches=first_batches,
        distinct_rows=len({row_digest(row, input_columns(first)) for row in sample.rows}),
    )


def _class_labels(rows: list[Any]) -> Array | None:
    """Return integers (n,): one label a row, if that is what the rows carry."""
    name = target_name(rows[0])
    values: list[Any] = [fields(row).get(name) for row in rows] if name is not None else []
    if not values or any(value is None or isinstance(value, str) for value in values):
        return None
    labels = to_array([value.item() if is_tensor(value) and value.numel() == 1 else value for value in values])
    if labels is None or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        return None
    return labels


def _token_lengths(rows: list[Any], pad_token_id: int | None) -> Array | None:
    if not isinstance(rows[0], Mapping) or "input_ids" not in rows[0]:
        return None
    lengths = []
    for row in rows:
        counted = to_array(row["attention_mask"]) if "attention_mask" in row else None
        if counted is None:
            ids = to_array(row["input_ids"])
            if ids is None or ids.ndim != 1:
                return None
            counted = np.ones_like(ids) if pad_token_id is None else ids != pad_token_id
        lengths.append(int(counted.sum()))
    return np.array(lengths)


def to_device(batch: Any, device: torch.device) -> Any:
    """Move every tensor in a batch of dicts, lists and tuples, as a training loop does."""
    if callable(getattr(batch, "to", None)):  # a tensor, a packed sequence, a graph: they know what stays behind
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
