"""Reads the tokens of one batch, and what the loss does with each; it needs no framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import LABEL_NAMES, to_array
from diagnostics.errors import InvalidInput, what
from diagnostics.facts.array import Array
from diagnostics.facts.batch_view import Labels, State, Token, TokenFacts, TokenRow

IGNORED = -100
NO_LIMIT = 1_000_000  # tokens: transformers writes a far larger number where a tokenizer has no limit
MOSTLY = 0.9  # of the labels that count: a few may be masked or replaced
SEGMENTS = ("seq_idx", "segment_ids", "sequence_ids")
SPACES = ("▁", "Ġ")  # how SentencePiece and byte-level BPE write a leading space


def token_facts(batch: Mapping[str, Any], tokenizer: Any = None, causal: bool | None = None) -> TokenFacts:
    """Return the tokens of a batch.

    Args:
        batch: with `input_ids`, (rows, length) or one row, and whatever else the model gets.
        tokenizer: decodes ids and knows the special tokens; None: ids are shown.
        causal: whether the model predicts the next token and shifts the labels itself; None: not known.

    Raises:
        InvalidInput: it has no token ids, or arrays that do not fit together.
    """
    ids = _rows(batch.get("input_ids"), "input_ids")
    count, shape = len(ids), [len(row) for row in ids]
    words = _Words(tokenizer)
    name = next((name for name in LABEL_NAMES if batch.get(name) is not None), None)
    given = None if name is None else batch[name]
    completions = None if name else _aligned(batch, ("completion_mask",), shape)  # of TRL's preference losses
    if completions is not None:
        given = [np.where(mask, row, IGNORED) for row, mask in zip(ids, completions, strict=True)]
    kind, labels = _labels(given, ids, name)
    if kind == "in place" and causal is not False:
        kind = _kind_of_copies(ids, labels, causal)
    masks = _aligned(batch, ("attention_mask",), shape) or [words.unpadded(row) for row in ids]
    positions = _aligned(batch, ("position_ids",), shape)
    numbers = _aligned(batch, SEGMENTS, shape)
    decodes = kind != "in place" or words.fills_in(ids, labels)
    rows = []
    for at in range(count):
        places = np.arange(shape[at]) if positions is None else positions[at]
        segment = _segments(places, masks[at]) if numbers is None else numbers[at] - numbers[at].min()
        counted = _counted(labels[at], kind) if kind in _BY_TOKEN else None
        tokens = []
        for place, id in enumerate(ids[at].tolist()):
            state: State = "read"
            label = label_role = ""
            if not masks[at][place]:
                state = "padding"
            elif counted is not None:
                state = "trained" if counted[place] else "ignored"
            # The loss knows nothing of the mask: a label counts where a token is padding, too.
            if counted is not None and counted[place]:
                state = "trained"
                target = int(labels[at][place])
                label = words.label(target, id, decodes)
                label_role = words.role(target, state) if decodes else ""
            text = words.text(id)
            where = int(places[place]), int(segment[place])
            tokens.append(Token(text, state, words.role(id, state), label, *where, label_role))
        of_row = words.row_label(labels[at]) if kind == "of the row" else ""
        at_limit = words.limit is not None and sum(token.state != "padding" for token in tokens) >= words.limit
        rows.append(TokenRow(tuple(tokens), of_row, at_limit=at_limit))
        if kind == "of a decoder":
            rows.append(_decoder(labels[at], words))
    return TokenFacts(tuple(rows), kind, causal, words.has_end)


def tokenizer_of(*owners: Any) -> Any:
    """Return the tokenizer that one of these holds: a Trainer or a collator."""
    for owner in owners:
        for name in ("processing_class", "tokenizer", "processor"):
            found = getattr(owner, name, None)
            found = getattr(found, "tokenizer", found)
            if found is not None and hasattr(found, "decode"):
                return found
    return None


_BY_TOKEN = ("next token", "shifted by hand", "in place")


def _rows(value: Any, name: str) -> list[Array]:
    """Return the rows of a matrix of ids, or of a list of lists of different lengths."""
    if value is None:
        raise InvalidInput(
            "show_tokens() was given a batch without input_ids. Pass a batch as the model gets it, such as "
            "next(iter(loader)), with token ids under that name."
        )
    if isinstance(value, list | tuple) and value and not isinstance(value[0], int):
        rows = [to_array(row) for row in value]
    else:
        array = to_array(value)
        rows = [None] if array is None else [array] if array.ndim == 1 else list(array)
    if not rows or any(row is None or row.ndim != 1 or row.dtype.kind not in "iu" for row in rows):
        raise InvalidInput(
            f"show_tokens() cannot read {name} ({what(value)}). They must be token ids, whole numbers of shape "
            "(rows, length). Tokenize the texts first, or pass a batch from the loader."
        )
    return [row for row in rows if row is not None]


def _aligned(batch: Mapping[str, Any], names: Sequence[str], shape: list[int]) -> list[Array] | None:
    """Return what a batch has for each token under the first of these names that it holds."""
    for name in names:
        if batch.get(name) is None:
            continue
        value = to_array(batch[name])
        if name == "attention_mask" and value is not None and value.ndim > 2:
            return None  # a mask by query and key
        rows = _rows(batch[name], name) if value is None or value.dtype.kind != "b" else list(np.atleast_2d(value))
        if len(rows) == 1 and len(shape) > 1:
            rows *= len(shape)  # positions that all rows share
        if [len(row) for row in rows] != shape:
            raise InvalidInput(
                f"show_tokens() was given {len(shape)} rows of input_ids (the first has {shape[0]} tokens) and "
                f"{len(rows)} of {name} (the first has {len(rows[0])}). Pass a batch in which both have the same "
                "shape."
            )
        return [row.astype(int) for row in rows]
    return None


def _labels(value: Any, ids: list[Array], name: str | None) -> tuple[Labels, list[Array]]:
    """Say what kind of labels a batch has, and return them by row."""
    if value is None:
        return "none", []
    array = to_array(value)
    if array is not None and array.ndim == 1 and len(ids) == 1 and len(array) == len(ids[0]) > 1:
        array = array[None]  # a single row
    if array is not None and array.ndim <= 1:
        array = np.atleast_1d(array)
        if len(array) != len(ids):
            raise InvalidInput(
                f"show_tokens() was given {len(ids)} rows of input_ids and {len(array)} of {name}. Pass a batch "
                "in which each row has its label."
            )
        return "of the row", list(array)
    if array is not None and (array.dtype.kind == "f" or array.ndim > 2):
        return "of the row", list(array)  # a vector for each row
    rows = _rows(value, name or "labels")
    if len(rows) != len(ids):
        raise InvalidInput(
            f"show_tokens() was given {len(ids)} rows of input_ids and {len(rows)} of {name}. Pass a batch in "
            "which each row has its labels."
        )
    same = all(len(row) == len(known) for row, known in zip(rows, ids, strict=True))
    return ("in place" if same else "of a decoder"), rows


def _kind_of_copies(ids: list[Array], labels: list[Array], causal: bool | None) -> Labels:
    """Tell labels that copy the tokens from labels that were shifted by hand, and from others."""
    pairs = [(row, known, row != IGNORED) for row, known in zip(labels, ids, strict=True)]
    total = sum(int(counts[1:].sum()) for _, _, counts in pairs)
    if not total:
        return "next token" if causal or not any(counts.any() for *_, counts in pairs) else "in place"
    copied = sum(int((row == known)[1:][counts[1:]].sum()) for row, known, counts in pairs)
    ahead = sum(int((row[:-1] == known[1:])[counts[:-1]].sum()) for row, known, counts in pairs)
    if ahead > max(MOSTLY * sum(int(counts[:-1].sum()) for *_, counts in pairs), copied):
        return "shifted by hand"
    return "next token" if causal or copied >= MOSTLY * total else "in place"


def _counted(labels: Array, kind: Labels) -> Array:
    """Return which labels the loss counts: a causal model has nothing to predict the first token from."""
    counted = np.asarray(labels != IGNORED)
    if kind == "next token":
        counted[:1] = False
    return counted


def _segments(positions: Array, mask: Array) -> Array:
    """Number the segments of a row: a new one begins where the positions of two tokens do not rise."""
    real = np.asarray(mask, dtype=bool)
    begins = np.zeros(len(positions), dtype=int)
    begins[1:] = (positions[1:] <= positions[:-1]) & real[1:] & real[:-1]
    return np.cumsum(begins)


def _decoder(labels: Array, words: _Words) -> TokenRow:
    tokens = []
    for place, id in enumerate(labels.tolist()):
        state: State = "padding" if id == IGNORED else "trained"
        text = "-100" if id == IGNORED else words.text(id)
        tokens.append(Token(text, state, words.role(id, state), "", place))
    return TokenRow(tuple(tokens), decoder=True)


def _limit(tokenizer: Any) -> int | None:
    """Return the number of tokens to which a tokenizer truncates; None if it does not, or that is not known."""
    raw = getattr(tokenizer, "backend_tokenizer", tokenizer)
    truncation = getattr(raw, "truncation", None)
    if isinstance(truncation, dict) and isinstance(truncation.get("max_length"), int):
        return int(truncation["max_length"])
    longest = getattr(tokenizer, "model_max_length", None)
    return longest if isinstance(longest, int) and 1 < longest < NO_LIMIT else None


class _Words:
    """Decodes ids one by one, and names the roles of special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._texts: dict[int, str] = {}
        self._pad = getattr(tokenizer, "pad_token_id", None)
        ids = getattr(tokenizer, "all_special_ids", None) or ()
        self._special = {int(id) for id in ids}
        named = (
            (("unk_token_id",), "unknown"),
            (("pad_token_id",), "padding"),
            (("bos_token_id", "cls_token_id"), "start"),
            (("eos_token_id", "sep_token_id"), "end"),
        )
        roles = {}
        for names, role in named:  # the end last: a token that pads and ends is an end where it is read
            for name in names:
                id = getattr(tokenizer, name, None)
                if isinstance(id, int):
                    roles[id] = role
        self._roles = roles
        self.limit = _limit(tokenizer)
        self.has_end = None if tokenizer is None else "end" in roles.values()

    def text(self, id: int) -> str:
        """Decode one id."""
        if id not in self._texts:
            self._texts[id] = self._decoded(id)
        return self._texts[id]

    def role(self, id: int, state: State) -> str:
        """Name the role of a token."""
        if state == "padding":
            return "padding"
        return self._roles.get(id, "special" if id in self._special else "")

    def label(self, label: int, id: int, decodes: bool) -> str:
        """Return what is to be predicted at a place, if it is not the token itself."""
        if not decodes:
            return str(label)  # a class of the token
        return "" if label == id else self.text(label)

    def fills_in(self, ids: list[Array], labels: list[Array]) -> bool:
        """Return whether labels are tokens to be filled in: some of them belong to the mask token."""
        mask = getattr(self._tokenizer, "mask_token_id", None)
        pairs = zip(ids, labels, strict=True)
        return mask is not None and any(bool((row == mask)[of != IGNORED].any()) for row, of in pairs)

    def row_label(self, label: Array) -> str:
        """Return the label of a whole row as text."""
        values = np.asarray(label)
        if values.ndim == 0:
            return f"{values.item():.4g}" if values.dtype.kind == "f" else str(values.item())
        shown = ", ".join(f"{value:.4g}" for value in values.ravel()[:8].tolist())
        return f"[{shown}{', …' if values.size > 8 else ''}]"

    def unpadded(self, ids: Array) -> Array:
        """Return a mask, for a batch without one: the pad tokens at both ends of a row are padding.

        Where the end token pads, too, the first after the text is its end.
        """
        mask = np.ones(len(ids), dtype=int)
        if not isinstance(self._pad, int):
            return mask
        others = np.flatnonzero(ids != self._pad)
        if not len(others):
            return mask
        first, last = int(others[0]), int(others[-1])
        mask[:first] = 0
        mask[last + 1 + (self._roles.get(self._pad) == "end") :] = 0
        return mask

    def _decoded(self, id: int) -> str:
        if self._tokenizer is None or id < 0:
            return str(id)
        try:
            text = str(self._tokenizer.decode([id]))
            piece = self._tokenizer.convert_ids_to_tokens(id)
        except Exception:  # an id that it does not have, or a tokenizer of another library
            try:
                return str(self._tokenizer.decode([id]))
            except Exception:
                return str(id)
        if isinstance(piece, str) and piece.startswith(SPACES) and not text.startswith(" "):
            text = f" {text}"
        return text or str(piece)
