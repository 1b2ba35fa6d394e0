"""Finds out what padding does to the answers: does a text still count once it is padded?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.shared.dependence.subject import Inputs, OutOfTime, Unclear
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import PaddingFacts

from .subject import Subject

MAX_ROWS = 6  # with the most padding, that are run one by one
MIN_PADDED = 4  # rows of the batch with padding
MIN_WORDS = 2  # of a row
SHORT, LONG = 2, 4  # positions of padding: of a row that counts as padded, and of the row with the most
OTHERS = 3  # other texts that the words of a row are replaced by


@dataclass(frozen=True)
class _Padded:
    """The input that is padded, and how many positions of each row are not."""

    name: str
    lengths: list[int]
    width: int


def compare_padding(subject: Subject) -> PaddingFacts:
    """Replace the words of padded rows by others, with the padding and without it; compare how the answers change.

    Raises:
        Unclear: no input is seen to be padded, or the answers are not one for each row.
        OutOfTime: the time is over.
    """
    padded = _padded_input(subject.inputs)
    size = len(padded.lengths)
    if any(tensor.ndim and len(tensor) != size for tensor in subject.inputs.values()):
        raise Unclear("the first axis of an input is not the batch axis")
    order = sorted(range(size), key=lambda row: padded.lengths[row])
    longest = padded.width - min(padded.lengths)
    if _hides_words(subject, padded):
        return PaddingFacts(padded.name, size, longest, with_padding=0.0, without=0.0, hides_words=True)
    chosen = [row for row in order if MIN_WORDS <= padded.lengths[row] <= padded.width - SHORT][:MAX_ROWS]
    with_padding, without, fails = [], [], 0
    for row in chosen:
        kept = padded.lengths[row]
        one = {name: t[row : row + 1] if t.ndim else t for name, t in subject.inputs.items()}
        first = subject.ask(one).main
        if first.ndim and (first.shape[0] != 1 or padded.width in first.shape[1:]):
            raise Unclear("the model does not return a single prediction for each row")
        if not np.isfinite(first).all():
            raise Unclear("the predictions are not finite")
        try:
            cut = subject.ask(_trimmed(one, kept, padded.width)).main
        except OutOfTime:
            raise
        except Exception:  # the model's own: it may have a weight for each position
            fails += not np.isfinite(subject.ask(_filled(one, padded.name, kept)).main).all()
            continue
        if cut.shape != first.shape:
            raise Unclear("the shape of the predictions depends on the length of the rows")
        if not np.isfinite(cut).all():
            fails += 1
            continue
        others = [_with_words(one, padded.name, subject.inputs[padded.name], row, kept, n) for n in range(OTHERS)]
        with_padding.append(max(_apart(subject.ask(other).main, first) for other in others))
        without.append(max(_apart(subject.ask(_trimmed(other, kept, padded.width)).main, cut) for other in others))
    if not without and not fails:
        raise Unclear("no row of the batch has enough padding")
    return PaddingFacts(
        input=padded.name,
        rows=len(chosen),
        longest=longest,
        with_padding=sorted(with_padding)[(len(with_padding) - 1) // 2] if with_padding else 0.0,
        without=sorted(without)[(len(without) - 1) // 2] if without else 0.0,
        fails=fails,
    )


def _hides_words(subject: Subject, padded: _Padded) -> bool:
    """Whether a padding mask of PyTorch's attention leaves out each word of the batch, and no padding."""
    masks: list[Tensor] = []

    def before(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        given = options.get("key_padding_mask", arguments[3] if len(arguments) > 3 else None)
        if isinstance(given, Tensor):
            masks.append(given.detach())

    attention = [module for module in subject.model.modules() if isinstance(module, nn.MultiheadAttention)]
    hooks = [module.register_forward_pre_hook(before, with_kwargs=True) for module in attention]
    try:
        if hooks:
            subject.ask(subject.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    for mask in masks:
        left_out = mask if mask.dtype == torch.bool else mask == -torch.inf
        lengths = torch.tensor(padded.lengths, device=mask.device)
        words = torch.arange(padded.width, device=mask.device) < lengths[:, None]
        if left_out.shape == words.shape and bool((left_out == words).all()):
            return True
    return False


def _padded_input(inputs: Inputs) -> _Padded:
    """Return the only input that ends in rows of equal padding of different lengths."""
    found = [one for name, tensor in inputs.items() if (one := _padding_of(name, tensor)) is not None]
    if len(found) != 1:
        raise Unclear("needs exactly one input with padding")
    return found[0]


def _padding_of(name: str, tensor: Array) -> _Padded | None:
    if "mask" in name or "label" in name or tensor.dtype == bool or tensor.ndim not in (2, 3):
        return None
    if (tensor.dtype.kind == "f") != (tensor.ndim == 3) or tensor.shape[0] < 2 or tensor.shape[1] <= LONG:
        return None
    blank = _blank(tensor)
    runs = np.cumprod(blank[:, ::-1], 1).sum(1)
    if int((runs >= SHORT).sum()) < MIN_PADDED or int(runs.max()) < LONG or int(runs.min()) == int(runs.max()):
        return None
    if int(blank.sum()) != int(runs.sum()):  # the value occurs among the words
        return None
    width = int(tensor.shape[1])
    return _Padded(name, [width - int(run) for run in runs], width)


def _trimmed(one: Inputs, kept: int, width: int) -> dict[str, Array]:
    return {name: t[:, :kept] if t.ndim > 1 and t.shape[1] == width else t for name, t in one.items()}


def _filled(one: Inputs, name: str, kept: int) -> dict[str, Array]:
    """Put words in the place of the padding."""
    given = one[name].copy()
    given[:, kept:] = given[:, np.arange(given.shape[1] - kept) % kept]
    return {**one, name: given}


def _with_words(one: Inputs, name: str, batch: Array, row: int, kept: int, number: int) -> dict[str, Array]:
    """Replace the words of a row, but not the first, by those of other rows; the padding stays."""
    size = len(batch)
    other = (row + 1 + number * max(1, size // (OTHERS + 1))) % size
    words, given = batch[other][~_blank(batch)[other]], one[name].copy()
    given[0, 1:kept] = words[np.arange(kept - 1) % max(1, len(words))]
    return {**one, name: given}


def _blank(batch: Array) -> Array:
    """Return which positions (rows, length) of a batch are padding: zeros, or the token that most rows end in."""
    return np.asarray((batch == 0).all(-1) if batch.ndim == 3 else batch == most_frequent(batch[:, -1]))


def most_frequent(values: Array) -> Any:
    """Return the most frequent of some values, the least of several."""
    kinds, counts = np.unique(values, return_counts=True)
    return kinds[counts.argmax()]


def _apart(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())
