"""Takes rows and one batch from PyTorch training data without advancing the user's iterators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
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

from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.shared.arrays import fields, is_tensor, target_name, to_array, with_parts
from diagnostics.collectors.shared.dataset_rows import (
    EMPTY,
    ROWS_READ,
    Sample,
    fresh_iterator,
    is_iterable_only,
    private,
    read_rows,
    sample_rows,
)
from diagnostics.collectors.shared.pipeline import StageFailed, users_code
from diagnostics.collectors.shared.reread import deep_copy
from diagnostics.collectors.shared.split_overlap import input_columns, row_digest
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts

FIRST_BATCHES = 5

_WHOLE = (SequentialSampler, RandomSampler, WeightedRandomSampler, DistributedSampler, SubsetRandomSampler)


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


def sample_loaded_rows(loader: DataLoader[Any], dataset: Any = None, seconds: float | None = None) -> Sample:
    """Read rows that a loader's sampler knows; of a sampler of the user's own kind, the first ones that it gives.

    Args:
        loader: the user's.
        dataset: a copy of the loader's dataset to read from instead.
        seconds: after which no further row is read.

    Raises:
        StageFailed: the dataset is empty.
        CannotJudge: reading a row would take it away from training.
        UsersCodeRaised: the dataset or the sampler raised.
    """
    dataset = loader.dataset if dataset is None else dataset
    if _has_own_order(loader):
        return sample_rows(dataset, indices=_in_own_order(loader), spread_out=False, seconds=seconds)
    return sample_rows(dataset, indices=getattr(loader.sampler, "indices", None), seconds=seconds)


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
        return _read_rows(fresh_iterator(data, "data"), 1)[0]


def collated(loader: DataLoader[Any], rows: int, reader: Callable[[Any], Any]) -> Any:
    """Collate the first rows of a loader's dataset.

    Args:
        loader: the user's.
        rows: how many, unless it has fewer.
        reader: returns what the rows of a dataset are read from.
    """
    dataset = loader.dataset
    if is_iterable_only(dataset):
        read = _read_rows(fresh_iterator(dataset, "dataset"), rows)
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


def _read_rows(iterator: Any, rows: int) -> list[Any]:
    read: list[Any] = []
    with users_code(), contextlib.suppress(StopIteration):
        while len(read) < rows:
            read.append(next(iterator))
    if not read:
        raise StageFailed("The data is empty: iterating it yielded nothing.")
    return read


def _has_own_order(loader: DataLoader[Any]) -> bool:
    """Whether rows come as a sampler decides that is not one of PyTorch's."""
    own_batches = type(loader.batch_sampler) not in (BatchSampler, type(None))
    return own_batches or type(loader.sampler) not in _WHOLE


def _in_own_order(loader: DataLoader[Any]) -> Iterator[Any]:
    """Yield what such a sampler asks for, row by row."""
    for asked in loader.sampler if loader.batch_sampler is None else loader.batch_sampler:
        yield from asked if isinstance(asked, list) else [asked]


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
    rows, complete = read_rows((reader[index] for index in range(count)), count, seconds)
    labels = class_labels(rows) if rows and complete else None
    if labels is None:
        return ()
    return tuple(labels[start : start + batch_size] for start in range(0, count - batch_size + 1, batch_size))


def sampling_weights(loader: DataLoader[Any]) -> int | None:
    """Return the number of weights of a loader's WeightedRandomSampler; None without one."""
    return len(loader.sampler.weights) if isinstance(loader.sampler, WeightedRandomSampler) else None


def dataset_facts(
    sample: Sample,
    *,
    columns: Sequence[str] | None = None,
    pad_token_id: int | None = None,
    label_names: tuple[str, ...] | None = None,
    weighted_sampling: bool | None = False,
    sampling_weights: int | None = None,
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
        sampling_weights: see `DatasetFacts`.
        shuffled: see `DatasetFacts`.
        first_batches: see `DatasetFacts`.
    """
    first = sample.rows[0]
    all_columns = list(first) if isinstance(first, Mapping) else []
    kept = all_columns if columns is None else [name for name in all_columns if name in columns]
    text_columns = tuple(name for name in all_columns if isinstance(first[name], str))
    token_lengths = _token_lengths(sample.rows, pad_token_id)
    removed = [_counted_labels(row["labels"]) for row in sample.removed]
    is_known = bool(removed) and None not in removed
    return DatasetFacts(
        size=sample.size,
        rows_read=len(sample.rows),
        spread_out=sample.spread_out,
        columns=tuple(kept),
        dropped_columns=tuple(name for name in all_columns if name not in kept),
        text_columns=text_columns,
        labels=class_labels(sample.rows),
        label_values=_label_values(sample.rows),
        label_names=label_names,
        token_lengths=token_lengths,
        words=None if token_lengths is None else _words(sample.rows, text_columns),
        weighted_sampling=weighted_sampling,
        sampling_weights=sampling_weights,
        shuffled=shuffled,
        first_batches=first_batches,
        distinct_rows=len({row_digest(row, input_columns(first)) for row in sample.rows}),
        stored=sample.stored,
        removed_rows=sample.removed_size,
        removed_lengths=_token_lengths(sample.removed, pad_token_id) if is_known else None,
        removed_labels=np.array(removed) if is_known else None,
    )


def class_labels(rows: list[Any]) -> Array | None:
    """Return integers (n,): one label a row, if that is what the rows carry."""
    name = target_name(rows[0])
    values: list[Any] = [fields(row).get(name) for row in rows] if name is not None else []
    if not values or any(value is None or isinstance(value, str) for value in values):
        return None
    labels = to_array([value.item() if is_tensor(value) and value.numel() == 1 else value for value in values])
    if labels is None or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        return None
    return labels


def _label_values(rows: list[Any]) -> Array | None:
    """Return the different integers among labels of which each row has several; None if there are none."""
    name = target_name(rows[0])
    if name is None:
        return None
    found: set[int] = set()
    for row in rows:
        labels = to_array(fields(row).get(name))
        if labels is None or not labels.ndim or not np.issubdtype(labels.dtype, np.integer):
            return None
        found.update(np.unique(labels).tolist())
    return np.array(sorted(found))


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


def _counted_labels(labels: Any) -> int | None:
    """Return how many labels of a sequence are not ignored; None for other labels."""
    array = to_array(labels)
    if array is None or array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        return None
    return int((array != -100).sum())


def _words(rows: list[Any], text_columns: tuple[str, ...]) -> Array | None:
    texts = [max((str(row.get(name) or "") for name in text_columns), key=len, default="") for row in rows]
    if 2 * len(set(texts)) <= len(rows):  # several rows may be windows of one text, which together hold all of it
        return None
    return np.array([len(text.split()) for text in texts])


def to_device(batch: Any, device: torch.device) -> Any:
    """Move every tensor in a batch of dicts, lists and tuples, as a training loop does."""
    if callable(getattr(batch, "to", None)):  # a tensor, a packed sequence, a graph: they know what stays behind
        return batch.to(device)
    return with_parts(batch, lambda part: to_device(part, device))
