"""Collects rows of any source into columns that a linear model can take. NumPy only."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import LABEL_NAMES, fields, to_array
from diagnostics.errors import InvalidInput
from diagnostics.facts.array import Array

MOST_ROWS = 10_000
MOST_NUMBERS = 2_048  # of one input; of longer ones every k-th. With the rows above, 80 MB of float32
MOST_WORDS = 2_000  # the commonest; a linear model on these is the usual yardstick for texts
TOKENS = ("input_ids", "token_ids", "tokens")
NO_FEATURES = ("attention_mask", "token_type_ids", "padding_mask", "position_ids", "idx", "id")
_WORD = re.compile(r"\w+")

Pair = tuple[Mapping[str, Any], Any]
"""Inputs by name, and the target, of a batch."""


@dataclass
class Table:
    """Rows, column by column.

    Attributes:
        numbers: float32 (rows, numbers) by name, batch by batch.
        bags: by name, the words or token ids of each row.
        targets: arrays (rows, ...) of numbers or strings, batch by batch.
        rows: so far.
        strided: by name, the length of an input of which only every k-th number was kept.
        left_out: names of inputs that hold neither numbers nor text.
    """

    numbers: dict[str, list[Array]] = field(default_factory=dict)
    bags: dict[str, list[list[Any]]] = field(default_factory=dict)
    targets: list[Array] = field(default_factory=list)
    rows: int = 0
    strided: dict[str, int] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)

    def add(self, inputs: Mapping[str, Any], target: Any) -> None:
        """Take the rows of a batch.

        Raises:
            InvalidInput: it has no target, or inputs and target differ in length.
        """
        labels = _target(target)
        for name, value in _leaves(inputs):
            if name.rpartition(".")[2] in NO_FEATURES:
                continue
            column = _column(name, value)
            if column is None:
                self.left_out.add(name)
                continue
            if len(column) != len(labels):
                raise InvalidInput(
                    f"baselines() was given {len(column):,} rows of inputs {name!r} and {len(labels):,} targets."
                )
            if isinstance(column, list):
                self.bags.setdefault(name, []).extend(column)
            else:
                self.numbers.setdefault(name, []).append(self._flat(name, column))
        self.targets.append(labels)
        self.rows += len(labels)

    def _flat(self, name: str, array: Array) -> Array:
        values = array.reshape(len(array), -1)
        step = -(-values.shape[1] // MOST_NUMBERS) or 1
        if step > 1:
            self.strided[name] = values.shape[1]
        return np.ascontiguousarray(values[:, ::step], dtype=np.float32)

    def target(self) -> Array:
        """Return the targets of all rows.

        Raises:
            InvalidInput: batches differ in the shape of their targets.
        """
        try:
            return np.concatenate(self.targets)
        except ValueError:
            shapes = " and ".join(sorted({str(part.shape[1:]) for part in self.targets}))
            raise InvalidInput(
                f"baselines() needs one target for each row; those of these batches differ in shape: {shapes}."
            ) from None


def collected(batches: Iterable[Pair], deadline: float, most: int = MOST_ROWS) -> Table:
    """Read batches until there are enough rows, or until the time is over.

    Args:
        batches: inputs and target of each.
        deadline: of `time.monotonic`.
        most: rows.

    Raises:
        InvalidInput: there is no row.
    """
    table = Table()
    for inputs, target in batches:
        table.add(inputs, target)
        if table.rows >= most or time.monotonic() > deadline:
            break
    if not table.rows:
        raise InvalidInput("baselines() was given data without any row: there is nothing to score.")
    return table


def split_pair(batch: Any) -> Pair:
    """Part a batch into inputs and target: the last of a tuple, or what a dict calls by a name of targets.

    Raises:
        InvalidInput: it has no target.
    """
    parts = fields(batch) if isinstance(batch, Mapping | tuple | list) else {}
    named = next((name for name in LABEL_NAMES if name in parts), None)
    if named is None and not isinstance(batch, Mapping) and len(parts) > 1:
        named = list(parts)[-1]
    if named is None:
        there = ", ".join(map(repr, parts)) or f"a single {type(batch).__name__}"
        raise InvalidInput(
            f"baselines() finds no target in a batch, which holds {there}. Give batches (inputs, target), or "
            f"dicts with one of: {', '.join(LABEL_NAMES)}."
        )
    target = parts.pop(named)
    return parts, target


def halves(table: Table, seed: int = 0) -> tuple[Array, Array]:
    """Draw a fifth of the rows to score on; return the indices of the others, and theirs."""
    order = np.random.default_rng(seed).permutation(table.rows)
    cut = max(1, table.rows // 5)
    return np.sort(order[cut:]), np.sort(order[:cut])


@dataclass(frozen=True)
class Features:
    """Turns columns into one matrix, as learned from the rows to fit on.

    Attributes:
        names: of the columns with numbers.
        vocabularies: by column, the place of each word or token.
        centre: float32 (features,), the mean.
        scale: float32 (features,), the standard deviation; 1 where that is 0.
    """

    names: tuple[str, ...]
    vocabularies: Mapping[str, Mapping[Any, int]]
    centre: Array
    scale: Array

    @classmethod
    def learned(cls, table: Table, rows: Array) -> Features:
        """Learn vocabularies and scales from some rows.

        Raises:
            InvalidInput: the inputs differ in shape, or hold neither numbers nor text.
        """
        vocabularies = {}
        for name, bags in table.bags.items():
            counts = Counter(word for row in rows for word in set(bags[row]))
            vocabularies[name] = {word: place for place, (word, _) in enumerate(counts.most_common(MOST_WORDS))}
        if not table.numbers and not table.bags:
            raise InvalidInput(
                f"baselines() finds neither numbers nor text in the inputs ({', '.join(sorted(table.left_out))})."
            )
        raw = cls(tuple(table.numbers), vocabularies, np.zeros(1, np.float32), np.ones(1, np.float32))
        values = raw._raw(table)[rows]
        scale = values.std(0)
        return cls(raw.names, vocabularies, values.mean(0), np.where(scale > 0, scale, 1).astype(np.float32))

    def matrix(self, table: Table) -> Array:
        """Return float32 (rows, features), standardised."""
        return np.asarray((self._raw(table) - self.centre) / self.scale)

    @property
    def described(self) -> str:
        """What the features are: ``16 numbers``, ``2,000 words``."""
        words = sum(map(len, self.vocabularies.values()))
        count = len(self.centre) - words
        parts = [f"{count:,} {'number' if count == 1 else 'numbers'}"] if count else []
        return " and ".join([*parts, *([f"{words:,} words or tokens"] if words else [])])

    def _raw(self, table: Table) -> Array:
        parts = []
        for name in self.names:
            try:
                values = np.concatenate(table.numbers.get(name, []))
            except ValueError:
                raise InvalidInput(
                    f"baselines() needs inputs of one shape, and those named {name!r} differ from batch to batch. "
                    f"Pad them, or leave them out; token ids are counted if they are named {TOKENS[0]!r}."
                ) from None
            parts.append(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))
        for name, places in self.vocabularies.items():
            counts = np.zeros((table.rows, len(places)), dtype=np.float32)
            for row, bag in enumerate(table.bags.get(name, [])):
                for word in bag:
                    if (place := places.get(word)) is not None:
                        counts[row, place] = 1.0
            parts.append(counts)
        if len({len(part) for part in parts}) != 1:
            raise InvalidInput("baselines() needs the same inputs in the training and in the evaluation data.")
        return np.concatenate(parts, axis=1)


def _target(target: Any) -> Array:
    if target is None:
        raise InvalidInput("baselines() was given data without a target. Give inputs and target: (x, y).")
    array = to_array(target)
    if array is None:
        words = np.asarray(target)
        if words.dtype.kind not in "US" and not all(isinstance(word, str) for word in words.reshape(-1)):
            raise InvalidInput(
                f"baselines() needs targets that are numbers or strings, and was given {type(target).__name__}."
            )
        array = words.astype(str)
    return array.reshape(-1) if array.ndim == 0 or array.shape[1:] == (1,) else array


def _leaves(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the columns within nested dicts and tuples; a list may be a column itself."""
    for name, value in inputs.items():
        if isinstance(value, Mapping | tuple) or (isinstance(value, list) and value and hasattr(value[0], "ndim")):
            yield from ((f"{name}.{inner}", leaf) for inner, leaf in _leaves(fields(value)))
        else:
            yield name, value


def _column(name: str, value: Any) -> Array | list[list[Any]] | None:
    """Return an array (rows, ...), or the words or token ids of each row; None for what is neither."""
    is_bag = name.rpartition(".")[2] in TOKENS
    array = to_array(value)
    if array is not None and not is_bag:
        return array if array.ndim else None
    if array is not None and array.ndim == 2 and array.dtype.kind in "iu":
        return list(array.tolist())
    try:
        rows = list(value.tolist() if hasattr(value, "tolist") else np.asarray(value, dtype=object).tolist())
    except (TypeError, ValueError):
        return None
    if rows and all(isinstance(row, str | bytes) for row in rows):
        texts = [row.decode("utf-8", "replace") if isinstance(row, bytes) else row for row in rows]
        return [_WORD.findall(text.lower()) for text in texts]
    if rows and all(isinstance(row, list) and all(isinstance(word, int) for word in row) for row in rows):
        return rows
    return None
