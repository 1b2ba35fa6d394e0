"""Reads rows of arrays, of a `datasets.Dataset`, and of lists of batches; imports no framework."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import LABEL_NAMES, fields
from diagnostics.errors import InvalidInput, what

from .table import MOST_ROWS, Pair, split_pair

CHUNK = 500  # rows that are read at a time, so that the time can be looked at in between
SEED = 0


def is_array(value: Any) -> bool:
    """Whether this is an array, a tensor or a table with a first axis of rows."""
    return hasattr(value, "shape") and hasattr(value, "__getitem__") and hasattr(value, "__len__")


def drawn(rows: int) -> list[int]:
    """Draw rows at random, as many as are read at most."""
    # Not a permutation: of a billion rows it would take gigabytes.
    chosen: list[int] = np.random.default_rng(SEED).choice(rows, min(rows, MOST_ROWS), replace=False).tolist()
    return chosen


def chunks(chosen: Sequence[int], size: int) -> Iterator[list[int]]:
    """Cut a list of rows into pieces."""
    for start in range(0, len(chosen), size):
        yield list(chosen[start : start + size])


def array_pairs(inputs: Any, target: Any) -> Generator[Pair]:
    """Read arrays (rows, ...), or structures of them.

    Raises:
        InvalidInput: they differ in length.
    """
    lengths = {len(part) for part in (*_arrays(inputs), target)}
    if len(lengths) != 1:
        raise InvalidInput(
            "baselines() was given inputs and targets of different lengths: "
            f"{' and '.join(f'{length:,}' for length in sorted(lengths))} rows."
        )
    for rows in chunks(drawn(lengths.pop()), CHUNK):
        part = _rows_of(inputs, rows)
        yield fields(part) if isinstance(part, Mapping | tuple) else {"0": part}, _rows_of(target, rows)


def _arrays(value: Any) -> Iterator[Any]:
    if is_array(value) or (isinstance(value, list) and not any(map(is_array, value))):
        yield value
    else:
        for part in fields(value).values():
            yield from _arrays(part)


def _rows_of(value: Any, rows: list[int]) -> Any:
    if isinstance(value, Mapping):
        return {name: _rows_of(part, rows) for name, part in value.items()}
    if isinstance(value, tuple) or (isinstance(value, list) and any(map(is_array, value))):
        return tuple(_rows_of(part, rows) for part in value)
    if isinstance(value, list):
        return [value[row] for row in rows]
    if hasattr(value, "iloc"):  # a DataFrame or a Series, whose numbers are what matters
        value = value.to_numpy()
    return value[np.asarray(rows)] if isinstance(value, np.ndarray) else _tensor_rows(value, rows)


def _tensor_rows(value: Any, rows: list[int]) -> Any:
    """Index a tensor; TensorFlow's knows no list of rows."""
    return np.asarray(value)[rows] if not hasattr(value, "detach") else value[rows]


def hub_pairs(dataset: Any, inputs: Sequence[str] | None, target: str | None) -> Generator[Pair]:
    """Read named columns of a `datasets.Dataset`.

    Raises:
        InvalidInput: a column does not exist, or it is not known which one is the target.
    """
    names, label = columns_of(list(dataset.column_names), inputs, target)
    for rows in chunks(drawn(len(dataset)), CHUNK):
        part = dataset[rows]
        yield {name: part[name] for name in names}, part[label]


def columns_of(there: Sequence[str], inputs: Sequence[str] | None, target: str | None) -> tuple[list[str], str]:
    """Choose the columns of the inputs and the one of the target.

    Raises:
        InvalidInput: see `hub_pairs`.
    """
    listed = ", ".join(map(repr, there)) or "no columns"
    label = target or next((name for name in LABEL_NAMES if name in there), None)
    if label is None:
        raise InvalidInput(
            f'baselines() does not know which column is the target: pass target="...". There are {listed}.'
        )
    chosen = [name for name in there if name != label] if inputs is None else list(inputs)
    for name in (*chosen, label):
        if name not in there:
            raise InvalidInput(f"baselines() was asked for the column {name!r}. There are {listed}.")
    if label in chosen:
        raise InvalidInput(f"baselines() was given {label!r} among inputs= and as the target.")
    if not chosen:
        raise InvalidInput(f"baselines() was given no inputs: {label!r} is the only column.")
    return chosen, label


def batch_pairs(batches: Sequence[Any]) -> Generator[Pair]:
    """Read a list of batches."""
    yield from map(split_pair, batches)


def check_readable_again(data: Any) -> None:
    """Refuse what can be read only once.

    Raises:
        InvalidInput: it is an iterator or a generator.
    """
    if hasattr(data, "__next__"):
        raise InvalidInput(
            f"baselines() was given {what(data)}, which can be read only once: reading it here would take its "
            "rows away from training. Pass something that can be read again: arrays, a DataLoader, a "
            "dataset, or a list of batches."
        )
