"""Takes rows and one batch from whatever PyTorch users train on, without moving anybody's place in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, RandomSampler, WeightedRandomSampler

from diagnostics.facts import Array, DatasetFacts

from .pipeline import CannotJudge, StageFailed, users_code
from .tensors import LABEL_NAMES, is_tensor, to_array

ROWS_READ = 512  # enough for a class of 1% to be seen with probability 0.994; milliseconds on a local dataset
ROWS_READ_IN_ORDER = 64  # of an iterable, which may read from a network: a batch or two
SECONDS_READING = 3.0  # a dataset that decodes images may be slow; then fewer rows are read

EMPTY = "The training dataset is empty: it has 0 rows. There is nothing to train on."


@dataclass(frozen=True)
class Sample:
    """Rows read from a dataset. `rows` are in the order read; `size` is None if the dataset cannot tell."""

    rows: list[Any]
    size: int | None
    spread_out: bool


def is_iterable_only(dataset: Any) -> bool:
    """Whether rows can only be had one after the other."""
    return isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")


def sample_rows(dataset: Any, limit: int = ROWS_READ) -> Sample:
    """Read at most `limit` rows: from all over a dataset with an index, the first ones of an iterable.

    Raises:
        StageFailed: the dataset is empty.
        CannotJudge: reading a row would take it away from training.
        UsersCodeRaised: the dataset raised.
    """
    started = time.monotonic()
    rows: list[Any] = []
    if is_iterable_only(dataset):
        size, indices = None, list[int]()
        iterator = fresh_iterator(dataset, "dataset")
        with users_code():
            for row in islice(iterator, min(limit, ROWS_READ_IN_ORDER)):
                rows.append(row)
                if time.monotonic() - started > SECONDS_READING:
                    break
    else:
        with users_code():
            size = len(dataset)
        indices = np.unique(np.linspace(0, size - 1, min(limit, size)).astype(int)).tolist() if size else []
        with users_code():
            for index in indices:
                rows.append(dataset[index])
                if time.monotonic() - started > SECONDS_READING:
                    break
    if not rows:
        raise StageFailed(EMPTY)
    return Sample(rows, size, spread_out=size is not None and len(rows) == len(indices))


def fresh_iterator(data: Iterable[Any], what: str) -> Any:
    """Start an iteration of our own.

    Raises:
        CannotJudge: the data is its own iterator, so that reading from it would take it away from training.
    """
    if hasattr(data, "__next__"):
        raise CannotJudge(
            f"the {what} is an iterator (a {type(data).__name__}): reading from it would take that away from "
            "training, so nothing was read. Pass something that can be iterated again, such as a DataLoader"
        )
    with users_code():
        iterator = iter(data)
    if iterator is data or iter(data) is iterator:
        raise CannotJudge(
            f"the {what} (a {type(data).__name__}) hands out the same iterator every time: reading from it would "
            "take rows away from training, so nothing was read"
        )
    return iterator


def collate_batch(loader: Any) -> Any:
    """Build one batch as a `DataLoader` would, in this process, without drawing from its sampler's generator.

    Where the loader shuffles, rows are drawn at random with a fixed seed; otherwise the first batch is built.
    """
    dataset, size = loader.dataset, loader.batch_size
    collate: Callable[[Any], Any] = loader.collate_fn
    if is_iterable_only(dataset):
        iterator = fresh_iterator(dataset, "dataset")
        with users_code():
            rows = next(iterator) if size is None else list(islice(iterator, size))
            return collate(rows)
    if isinstance(loader.sampler, RandomSampler | WeightedRandomSampler) and size is not None:
        rows = len(dataset)
        if rows == 0:
            raise StageFailed(EMPTY)
        if loader.drop_last and rows < size:
            raise StageFailed(
                f"The data loader yields no batch: {rows} rows do not fill one batch of {size}, and "
                "drop_last=True drops what is left over."
            )
        indices = np.random.default_rng(0).choice(rows, min(size, rows), replace=False)
    else:
        with users_code():
            indices = next(iter(loader.batch_sampler or loader.sampler), None)
        if indices is None:
            raise StageFailed(EMPTY)
    with users_code():
        if isinstance(indices, Iterable):
            return collate([dataset[int(index)] for index in indices])
        return collate(dataset[indices])


def dataset_facts(
    sample: Sample,
    *,
    columns: Sequence[str] | None = None,
    pad_token_id: int | None = None,
    label_names: tuple[str, ...] | None = None,
    weighted_sampling: bool = False,
) -> DatasetFacts:
    """Turn rows into facts.

    Args:
        sample: the rows: dicts, or tuples whose last element is the target.
        columns: the columns that reach the collator; None: all.
        pad_token_id: id to leave out when tokens are counted.
        label_names: what the classes are called.
        weighted_sampling: whether a sampler weighs rows.
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
    )


def _class_labels(rows: list[Any]) -> Array | None:
    """Return integers (n,): one label a row, if that is what the rows carry."""
    first = rows[0]
    if isinstance(first, Mapping):
        name = next((name for name in LABEL_NAMES if name in first), None)
        values = [row.get(name) for row in rows] if name else []
    elif isinstance(first, tuple | list) and len(first) > 1:
        values = [row[-1] for row in rows]
    else:
        values = []
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
    if is_tensor(batch):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
