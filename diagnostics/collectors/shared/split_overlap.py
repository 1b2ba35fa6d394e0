"""Compares training rows with evaluation rows by content, and the tokens that occur in both."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.data import NO_TOKEN, SplitFacts, TokenSides

from .arrays import LABEL_NAMES, to_array
from .pipeline import users_code

EVALUATION_ROWS = 512  # from all over the evaluation set
TRAINING_ROWS = 20_000  # in a fixed random order; the report says how many it were
SECONDS = 2.0  # for reading either of them
MOST_POSSIBLE = 2 * TRAINING_ROWS  # rows; a larger input space is not counted, the training rows cannot fill it
FRACTIONS = 4  # numbers with a fraction in a row, which then does not occur twice by nature
PIECE = 4  # numbers, or steps of several: as many that vary are not met twice by nature
LENGTH = 16  # of a window; shorter ones have few pieces
VALUE_REPEATS = 4  # ours: times that each value of an input is seen on average, if it is one of a few
MAX_ROWS, MAX_LENGTH = 2_048, 256  # rows of each side, evenly spread, and tokens of a row


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
        windows = _Windows()
        started = time.monotonic()
        for index in chosen.tolist():
            row = evaluation[index]
            compared = compared or input_columns(row)
            wanted.append(row_digest(row, compared))
            windows.want(row, compared)
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
            windows.look_into(row, compared)
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
        overlapping=windows.overlapping,
    )


def _has_fractions(row: Any, columns: Sequence[str]) -> bool:
    arrays = [to_array(value) for name in columns if not isinstance(value := column_value(row, name), str)]
    numbers = [array.reshape(-1) for array in arrays if array is not None and array.dtype.kind == "f"]
    return sum(int((values != np.round(values)).sum()) for values in numbers) >= FRACTIONS


class _Windows:
    """Counts the windows of a series that lie, shifted, in other rows: a piece and the last one are looked for.

    The latest values of a window after a split in time are in no training row, even if the others are.
    """

    def __init__(self) -> None:
        self._missing: list[int] = []  # by row: its pieces that were not found yet
        self._places: dict[bytes, list[tuple[int, int]]] = {}  # by piece: row and place in it

    @property
    def overlapping(self) -> int:
        """How many of the rows wanted were found."""
        return sum(not missing for missing in self._missing)

    def want(self, row: Any, columns: Sequence[str]) -> None:
        """Look for a row from now on."""
        pieces = _pieces(row, columns)
        chosen = [len(pieces) // 2, len(pieces) - 1] if pieces else []
        if len({pieces[place] for place in chosen}) < 2:
            self._missing.append(1)  # is never found
            return
        for place in chosen:
            self._places.setdefault(pieces[place], []).append((len(self._missing), place))
        self._missing.append(len(chosen))

    def look_into(self, row: Any, columns: Sequence[str]) -> None:
        """Look for the rows in another one."""
        if not self._places:
            return
        for place, piece in enumerate(_pieces(row, columns)):
            for number, own in self._places.get(piece, []):
                if own != place:  # at the same place it is a property that several rows share
                    self._missing[number] -= 1
            if piece in self._places:
                self._places[piece] = [one for one in self._places[piece] if one[1] == place]


def _pieces(row: Any, columns: Sequence[str]) -> list[bytes]:
    """Cut the only input of a row along its longest axis; empty if it holds no numbers with fractions."""
    value = column_value(row, columns[0]) if len(columns) == 1 else None
    array = None if value is None or isinstance(value, str) else to_array(value)
    if array is None or array.dtype.kind != "f" or array.ndim not in (1, 2) or max(array.shape) < LENGTH:
        return []
    along = np.ascontiguousarray(np.moveaxis(array, int(np.argmax(array.shape)), 0)).reshape(max(array.shape), -1)
    if (along == np.round(along)).any() or (np.diff(along, axis=0) == 0).all(axis=1).any():
        return []
    raw, step = along.tobytes(), along.itemsize * along.shape[1]
    return [raw[place * step : (place + PIECE) * step] for place in range(len(along) - PIECE + 1)]


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
            value = column_value(row, name)
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
    """Digest the content of these columns of a row, so that equal rows have equal digests.

    A list of another length than the row that gave the columns is a text of token ids: all of it counts.
    """
    digest = hashlib.blake2b(digest_size=16)
    if isinstance(row, tuple | list) and len(row) != max(len(columns) + 1, 2) and len(columns) > 1:
        digest.update(repr(row).encode())
        return digest.digest()
    for name in columns:
        value = column_value(row, name)
        array = None if isinstance(value, str) else to_array(value)
        digest.update(repr(value).encode() if array is None else array.tobytes())
        digest.update(b"|")
    return digest.digest()


def column_value(row: Any, name: str) -> Any:
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


def tokens_of_rows(training: Any, evaluation: Any, seconds: float, *, are_cut: bool = False) -> TokenSides | None:
    """Read rows of both sides by their index; None if they hold no tokens.

    Args:
        training: rows by index.
        evaluation: the same.
        seconds: to spend on reading either of them.
        are_cut: see `TokenSides`.
    """
    if not all(hasattr(data, "__getitem__") and hasattr(data, "__len__") for data in (training, evaluation)):
        return None
    with users_code():
        sizes = len(training), len(evaluation)
        if not all(sizes):
            return None
        columns = input_columns(training[0])
        sides = [_read(data, columns, seconds) for data in (training, evaluation)]
    both = {name: (sides[0][name], sides[1][name]) for name in columns if all(name in side for side in sides)}
    return TokenSides(both, *sizes, are_cut) if both else None


def tokens_of_arrays(inputs: Mapping[str, tuple[Array, Array]], *, are_cut: bool) -> TokenSides | None:
    """Take tokens of arrays, by name of both sides; None if none holds tokens."""
    tokens = {name: sides for name, sides in inputs.items() if all(map(_are_tokens, sides))}
    if not tokens:
        return None
    sizes = [len(side) for side in next(iter(tokens.values()))]
    bounded = {name: (_bounded(training), _bounded(held)) for name, (training, held) in tokens.items()}
    return TokenSides(bounded, sizes[0], sizes[1], are_cut)


def _are_tokens(array: Array) -> bool:
    return bool(array.dtype.kind in "iu" and array.ndim in (1, 2) and array.size)


def _bounded(array: Array) -> Array:
    rows = array[_spread(len(array))]
    return np.asarray(rows.reshape(len(rows), -1)[:, :MAX_LENGTH].astype(np.int64))


def _spread(size: int) -> Array:
    return np.unique(np.linspace(0, size - 1, min(MAX_ROWS, size)).astype(int))


def _read(data: Any, columns: Sequence[str], seconds: float) -> dict[str, Array]:
    """Return the tokens (rows, length) of the columns that hold some in each row, shorter ones filled up.

    The rows are read in another order than theirs: if time runs out, those read are spread evenly all the same.
    """
    rows: dict[str, list[Array]] = {name: [] for name in columns}
    started = time.monotonic()
    for index in np.random.default_rng(0).permutation(_spread(len(data))).tolist():
        row = data[index]
        for name in list(rows):
            value = column_value(row, name)
            array = None if value is None or isinstance(value, str) else to_array(value)
            if array is None or array.ndim > 1 or array.dtype.kind not in "iu" or not array.size:
                del rows[name]
            else:
                rows[name].append(array.reshape(-1)[:MAX_LENGTH])
        if not rows or time.monotonic() - started > seconds:
            break
    found = {}
    for name, parts in rows.items():
        found[name] = np.full((len(parts), max(map(len, parts))), NO_TOKEN, dtype=np.int64)
        for place, part in enumerate(parts):
            found[name][place, : len(part)] = part
    return found
