"""Compares training rows with evaluation rows by content."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from diagnostics.facts.data import SplitFacts

from .arrays import LABEL_NAMES, to_array
from .pipeline import users_code

EVALUATION_ROWS = 512  # from all over the evaluation set
TRAINING_ROWS = 20_000  # in a fixed random order; the report says how many it were
SECONDS = 2.0  # for reading either of them
MOST_POSSIBLE = 2 * TRAINING_ROWS  # rows; a larger input space is not counted, the training rows cannot fill it
FRACTIONS = 4  # numbers with a fraction in a row, which then does not occur twice by nature
VALUE_REPEATS = 4  # ours: times that each value of an input is seen on average, if it is one of a few


def compared_rows(training: Any, evaluation: Any, seconds: float = SECONDS) -> Iterator[SplitFacts]:
    """Count evaluation rows that are also training rows; yields nothing if there is no index.

    Args:
        training: rows by index.
        evaluation: the same.
        seconds: to spend on reading either of them.
    """
    if not all(hasattr(data, "__getitem__") and hasattr(data, "__len__") for data in (training, evaluation)):
        return
    with users_code():
        training_size, evaluation_size = len(training), len(evaluation)
        if not training_size or not evaluation_size:
            return
        chosen = np.unique(np.linspace(0, evaluation_size - 1, min(EVALUATION_ROWS, evaluation_size)).astype(int))
        compared: tuple[str, ...] = ()
        wanted: list[bytes] = []
        started = time.monotonic()
        for index in chosen.tolist():
            row = evaluation[index]
            compared = compared or input_columns(row)
            wanted.append(row_digest(row, compared))
            if time.monotonic() - started > seconds:
                break
        found: set[bytes] = set()
        space = _InputSpace()
        read, fractions = 0, False
        started = time.monotonic()
        for index in _spread_over(training_size):
            row = training[index]
            found.add(row_digest(row, compared))
            space.add(row, compared)
            fractions = fractions or (not read and _has_fractions(row, compared))
            read += 1
            if read == TRAINING_ROWS or time.monotonic() - started > seconds:
                break
    yield SplitFacts(
        training_rows=read,
        training_size=training_size,
        evaluation_rows=len(wanted),
        evaluation_size=evaluation_size,
        shared=sum(digest in found for digest in wanted),
        compared=compared,
        distinct_training_rows=len(found),
        possible_rows=space.size(read),
        fractions=fractions,
    )


def _has_fractions(row: Any, columns: Sequence[str]) -> bool:
    arrays = [to_array(value) for name in columns if not isinstance(value := _value(row, name), str)]
    numbers = [array.reshape(-1) for array in arrays if array is not None and array.dtype.kind == "f"]
    return sum(int((values != np.round(values)).sum()) for values in numbers) >= FRACTIONS


class _InputSpace:
    """Counts the rows that can be formed of the values seen at each place of a row."""

    def __init__(self) -> None:
        self._values: list[set[Any]] | None = []

    def add(self, row: Any, columns: Sequence[str]) -> None:
        """Record the values of a row, while the space is small."""
        if self._values is None:
            return
        values: list[Any] = []
        for name in columns:
            value = _value(row, name)
            array = None if isinstance(value, str) else to_array(value)
            values += [repr(value)] if array is None else array.reshape(-1).tolist()
        self._values = self._values or [set() for _ in values]
        if len(values) != len(self._values):  # rows of different lengths
            self._values = None
            return
        for seen, value in zip(self._values, values, strict=True):
            seen.add(value)
        if math.prod(map(len, self._values)) > MOST_POSSIBLE:
            self._values = None

    def size(self, rows: int) -> int | None:
        """Return the number of rows; None if it is large, or an input takes as many values as there are rows."""
        if not self._values or any(len(seen) * VALUE_REPEATS > rows for seen in self._values):
            return None
        return math.prod(map(len, self._values))


def input_columns(row: Any) -> tuple[str, ...]:
    """Name the parts of a row that are input: all but the target. Tuples count from "0"."""
    if isinstance(row, Mapping):
        return tuple(str(name) for name in row if name not in LABEL_NAMES)
    if isinstance(row, tuple | list):
        return tuple(str(index) for index in range(max(len(row) - 1, 1)))
    return ("0",)


def row_digest(row: Any, columns: Sequence[str]) -> bytes:
    """Digest the content of these columns of a row, so that equal rows have equal digests."""
    digest = hashlib.blake2b(digest_size=16)
    for name in columns:
        value = _value(row, name)
        array = None if isinstance(value, str) else to_array(value)
        digest.update(repr(value).encode() if array is None else array.tobytes())
        digest.update(b"|")
    return digest.digest()


def _value(row: Any, name: str) -> Any:
    """Return the value of a row's column, as `input_columns` names it."""
    if isinstance(row, Mapping):
        return row.get(name)
    return row[int(name)] if isinstance(row, tuple | list) else row


def _spread_over(size: int) -> Iterator[int]:
    """Yield every index once, so that any first part of them is spread evenly."""
    stride = max(int(size * 0.6180339887), 1)  # the golden ratio; made to share no divisor with the size
    while math.gcd(stride, size) != 1:
        stride += 1
    for step in range(size):
        yield step * stride % size
