"""Reads rows of a dataset without advancing the user's iterators; imports no framework."""

from __future__ import annotations

import contextlib
import copy
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from .pipeline import CannotJudge, StageFailed, users_code

ROWS_READ = 512  # enough for a class of 1% to be seen with probability 0.994; milliseconds on a local dataset
ROWS_READ_IN_ORDER = 64  # of an iterable, which may read from a network: a batch or two
ROWS_OF_TABLE = 10_000_000  # of a larger table, it is not found out which rows a dataset leaves out
SECONDS_READING = 3.0  # a dataset that decodes images may be slow; then fewer rows are read

EMPTY = "The training dataset is empty: it has 0 rows. There is nothing to train on."


@dataclass(frozen=True)
class Sample:
    """Rows read from a dataset. `rows` are in the order read; `size` is None if the dataset cannot tell.

    `removed_size` rows of its table were removed by a filter or a selection; `removed` are those that were read.
    """

    rows: list[Any]
    size: int | None
    spread_out: bool
    stored: bool = False
    removed_size: int = 0
    removed: list[Any] = field(default_factory=list)


def text_by_column(dataset: Any) -> dict[str, bool] | None:
    """Return the columns of a Hugging Face dataset, and whether each holds text; None for any other object."""
    ours = type(dataset).__module__.partition(".")[0] == "datasets"  # `features` of the user's own may compute
    features = getattr(dataset, "features", None) if ours else None
    if not isinstance(features, Mapping):
        return None
    texts = "string", "large_string", "string_view"
    return {str(name): str(getattr(kind, "dtype", "")) in texts for name, kind in features.items()}


def is_iterable_only(dataset: Any) -> bool:
    """Whether rows can only be had one after the other."""
    return _is_torchs(dataset, "IterableDataset") or not hasattr(dataset, "__getitem__")


def sample_rows(
    dataset: Any,
    limit: int = ROWS_READ,
    indices: Any = None,
    spread_out: bool = True,
    seconds: float | None = None,
) -> Sample:
    """Read at most `limit` rows: from all over a dataset with an index, the first ones of an iterable.

    Args:
        dataset: the user's.
        limit: rows.
        indices: of the rows to choose from; None for all. Ignored for an iterable.
        spread_out: whether to choose from all over `indices`, a sequence; else the first ones are taken.
        seconds: after which no further row is read.

    Raises:
        StageFailed: the dataset is empty.
        CannotJudge: reading a row would take it away from training.
        UsersCodeRaised: the dataset raised.
    """
    if is_iterable_only(dataset):
        rows, _ = read_rows(fresh_iterator(dataset, "dataset"), min(limit, ROWS_READ_IN_ORDER), seconds)
        size, spread_out = None, False
    else:
        with users_code():
            size = len(dataset)
            known = range(size) if indices is None else indices
            chosen = [known[place] for place in _spread(len(known), limit)] if spread_out else islice(known, limit)
        reader = private(dataset)
        rows, _ = read_rows((reader[index] for index in chosen), limit, seconds)
    if not rows:
        raise StageFailed(EMPTY)
    return Sample(rows, size, spread_out, _keeps_its_rows(dataset), *_removed_rows(dataset, limit))


def _removed_rows(dataset: Any, limit: int) -> tuple[int, list[Any]]:
    """Return the number of rows that a Hugging Face dataset leaves out of its table, and the tokens of some."""
    if type(dataset).__module__ != "datasets.arrow_dataset":
        return 0, []
    with contextlib.suppress(Exception):  # attributes that other versions may not have
        names = [name for name in ("input_ids", "attention_mask", "labels") if name in dataset.data.column_names]
        if dataset._indices is None or "labels" not in names or dataset.data.num_rows > ROWS_OF_TABLE:
            return 0, []
        left_out = np.ones(dataset.data.num_rows, bool)
        left_out[dataset._indices.column(0).to_numpy()] = False
        places = np.flatnonzero(left_out)
        columns = {name: dataset.data.column(name) for name in names}
        chosen = (places[place] for place in _spread(len(places), limit))
        return len(places), [{name: of[int(at)].as_py() for name, of in columns.items()} for at in chosen]
    return 0, []


def _spread(length: int, limit: int) -> list[int]:
    """Choose at most `limit` places from all over a sequence, in an order whose beginning is spread as well."""
    places = np.unique(np.linspace(0, length - 1, min(limit, length)).astype(int))
    shuffled: list[int] = np.random.default_rng(0).permutation(places).tolist()
    return shuffled


def read_rows(rows: Iterable[Any], limit: int, seconds: float | None = None) -> tuple[list[Any], bool]:
    """Read up to `limit` rows, and say whether there was time for all of them."""
    started, seconds = time.monotonic(), SECONDS_READING if seconds is None else seconds
    read: list[Any] = []
    with users_code():
        for row in islice(rows, limit):
            read.append(row)
            if time.monotonic() - started > seconds:
                return read, False
    return read, True


def _keeps_its_rows(dataset: Any) -> bool:
    """Return whether a dataset is a container of rows, without code of the script that computes them."""
    kind = type(dataset)
    if isinstance(dataset, list | tuple):
        return kind.__getitem__ in (list.__getitem__, tuple.__getitem__)
    if kind.__module__ == "datasets.arrow_dataset":
        return dataset.format["format_kwargs"].get("transform") is None
    if kind.__module__ != "torch.utils.data.dataset":
        return False
    if kind.__name__ == "ConcatDataset":
        return all(map(_keeps_its_rows, dataset.datasets))
    return kind.__name__ == "TensorDataset" or (kind.__name__ == "Subset" and _keeps_its_rows(dataset.dataset))


def _is_torchs(dataset: Any, name: str) -> bool:
    """Whether this is an instance of a class of PyTorch's datasets, without importing it."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(dataset, getattr(data, name))


def private(dataset: Any) -> Any:
    """Return a shallow copy of a dataset, so that what it notes on being read is not noted on the user's.

    A file that is opened on the first read must not be open when the loader's workers are forked.
    """
    if not _is_torchs(dataset, "Dataset"):
        return dataset
    try:
        if callable(getattr(dataset, "state_dict", None)):  # it knows its place, and shares it with a shallow copy
            return copy.deepcopy(dataset)
        twin = copy.copy(dataset)
        for name, value in vars(dataset).items():
            if _is_torchs(value, "Dataset"):
                setattr(twin, name, private(value))
            elif isinstance(value, list) and value and all(_is_torchs(part, "Dataset") for part in value):
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
