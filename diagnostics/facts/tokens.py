"""Tokens of a batch, and what the loss does with each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
