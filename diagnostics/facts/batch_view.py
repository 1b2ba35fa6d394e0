"""A few rows of a batch, bounded in size, and how they were read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diagnostics.facts.array import Array
from diagnostics.facts.frozen import frozen

Kind = Literal["images", "masks", "series", "table", "classes", "numbers", "tokens", "texts", "other"]
State = Literal["trained", "ignored", "padding", "read"]
Labels = Literal["next token", "shifted by hand", "in place", "of a decoder", "of the row", "none"]


@dataclass(frozen=True)
class Token:
    """One token.

    Attributes:
        text: as the tokenizer decodes it; its id if there is no tokenizer.
        state: "read" where no token has a label of its own.
        role: "start", "end", "padding", "unknown" or "special"; empty for other tokens.
        label: what is to be predicted here, if that is not the token itself; empty otherwise.
        position: in its segment, as `position_ids` says, or counted from the left.
        segment: number of the segment in its row, from 0: `position_ids` start again, or it is given.
        label_role: the role of `label`.
    """

    text: str
    state: State
    role: str = ""
    label: str = ""
    position: int = 0
    segment: int = 0
    label_role: str = ""

    @property
    def target_role(self) -> str:
        """The role of what is to be predicted here."""
        return self.label_role if self.label else self.role


@dataclass(frozen=True)
class TokenRow:
    """One row of a batch, or the labels of one row of a decoder.

    Attributes:
        tokens: in their order.
        label: of the whole row, as text; empty if there is none.
        decoder: whether these are the labels of an encoder-decoder model.
        at_limit: whether it is as long as the tokenizer's limit allows, so that its end may have been cut off.
    """

    tokens: tuple[Token, ...]
    label: str = ""
    decoder: bool = False
    at_limit: bool = False

    def count(self, state: State) -> int:
        """Count the tokens of one state."""
        return sum(token.state == state for token in self.tokens)

    @property
    def segments(self) -> int:
        """How many segments the row has."""
        return 1 + max((token.segment for token in self.tokens), default=0)


@dataclass(frozen=True)
class TokenFacts:
    """The tokens of a batch.

    Attributes:
        rows: all rows of the batch.
        labels: what the labels are: the tokens themselves, of which a causal model predicts each from those
            before it; the tokens after them; labels or tokens of the same positions; those of a decoder; one label
            for each row; or none.
        causal: whether the model is known to shift the labels; None if no model is known.
        has_ends: whether the tokenizer has an end token; None without a tokenizer.
    """

    rows: tuple[TokenRow, ...]
    labels: Labels
    causal: bool | None = None
    has_ends: bool | None = None


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
