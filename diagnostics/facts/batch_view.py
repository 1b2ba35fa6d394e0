"""A few rows of a batch, bounded in size, and how they were read."""

from __future__ import annotations

from typing import Literal

from diagnostics.facts.frozen import frozen

from .array import Array
from .tokens import TokenFacts

Kind = Literal["images", "masks", "series", "table", "classes", "numbers", "tokens", "texts", "other"]


@frozen
class BatchPart:
    """One input or target.

    Attributes:
        name: in the batch; a number where the batch is a tuple.
        kind: as what it is shown.
        read_as: the same in words, with its shape: ``32 images, 3 x 28 x 28, channels first``.
        dtype: of its numbers.
        values: of the rows shown. Images and masks uint8 (rows, height, width, channels), 1 or 3 of them; series
            float32 (rows, steps, features); a table (rows, features); classes and numbers (rows,). None otherwise.
        low: smallest finite value in the whole batch; None if no value is finite.
        high: largest one.
        counts: rows of the whole batch by class, the most frequent first.
        notes: what was done to show it, and what is wrong with it.
        texts: of the rows shown, if they are texts.
        tokens: of the rows shown, if they are token ids.
    """

    name: str
    kind: Kind
    read_as: str
    dtype: str = ""
    values: Array | None = None
    low: float | None = None
    high: float | None = None
    counts: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    tokens: TokenFacts | None = None


@frozen
class BatchView:
    """A batch as it is shown.

    Attributes:
        title: where it is from: ``training``, ``evaluation``, ``the first batch of a DataLoader``.
        size: rows of the whole batch; None if not known.
        shown: rows that are kept.
        inputs: what the model is given.
        targets: what it is to predict.
        left_out: how many further parts there are.
    """

    title: str
    size: int | None
    shown: int
    inputs: tuple[BatchPart, ...]
    targets: tuple[BatchPart, ...] = ()
    left_out: int = 0
