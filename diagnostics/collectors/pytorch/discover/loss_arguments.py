"""Reads what a loss was given: targets that it cannot use, axes and shapes that do not belong together."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from diagnostics.collectors.pytorch.activations import last_function
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.facts.array import Array
from diagnostics.facts.loss import (
    AlignedScores,
    AlignedTargets,
    FlattenedPair,
    LogRates,
    LossArguments,
    SelfPairs,
    ShareTargets,
    SignedTargets,
    TripletMargin,
)

SIGNED = ("cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "soft_margin_loss")
"""Losses whose targets are 1 and -1."""

TRIPLETS = ("triplet_margin_loss", "triplet_margin_with_distance_loss")
HEARD = (*SIGNED, *TRIPLETS, "ctc_loss", "poisson_nll_loss")
"""The losses that are read here and are of none of the common kinds."""

_PARAMETERS = {name: tuple(inspect.signature(getattr(F, name)).parameters) for name in HEARD}
LARGEST = 2**20  # numbers of a target that are read
FEWEST_PAIRS, MOST_PAIRS = 8, 4096  # rows of a batch whose scores with each other are compared
EQUAL = 2e-3  # of the largest score, as half precision rounds it
ROUNDING = 1e-3  # of a sum of shares, as half precision makes it
FRAMES = 64  # of a batch of sequences, whose scores are read
ADDS_UP = 0.1  # of a sum of probabilities: in bfloat16 their logarithms are known to 1%


@dataclass(frozen=True)
class OtherCall:
    """A call of one of the losses of `HEARD`.

    Attributes:
        name: of the function.
        given: its arguments by name; tensors detached.
        made_by: the function that computed its first argument; None if not known.
    """

    name: str
    given: Mapping[str, Any]
    made_by: str | None

    @classmethod
    def of(cls, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> OtherCall:
        """Record a call with these arguments."""
        given = dict(zip(_PARAMETERS[name], arguments, strict=False)) | options
        made_by = last_function(arguments[0]) if arguments and type(arguments[0]) is Tensor else None
        detached = {key: one.detach() if isinstance(one, Tensor) else one for key, one in given.items()}
        return cls(name, detached, made_by)

    def facts(self) -> Iterator[LossArguments]:
        """Return what the call shows. Waits for the device."""
        if self.name == "ctc_loss":
            yield from _aligned(self.given)
            yield from _scores(self.given.get("log_probs"))
        elif self.name == "poisson_nll_loss":
            target = _numbers(self.given.get("target"))
            if target is not None and self.given.get("log_input", True) is True:
                yield LogRates(self.made_by, float(target.mean()))
        elif self.name in TRIPLETS:
            margin = self.given.get("margin", 1.0)
            if isinstance(margin, int | float) and margin > 0 and self.given.get("reduction", "mean") == "mean":
                yield TripletMargin(self.name, float(margin))
        else:
            target = _numbers(self.given.get("target"))
            if target is not None:
                counts = int((target == 1).sum()), int((target == 0).sum())
                yield SignedTargets(self.name, target.size, *counts)


def shares(prediction: Tensor, target: Tensor) -> Iterator[ShareTargets]:
    """Describe targets of cross entropy that are shares of the classes."""
    if not target.is_floating_point() or target.shape != prediction.shape or target.ndim < 2:
        return
    values = _numbers(target)
    if values is None or values.shape[1] < 2 or values.min() < 0:
        return
    by_class, by_last = values.sum(axis=1), values.sum(axis=-1)
    binary = bool(((values == 0) | (values == 1)).all())
    yield ShareTargets(
        values.shape,
        float((np.abs(by_class - 1) <= ROUNDING).mean()),
        float((np.abs(by_last - 1) <= ROUNDING).mean()),
        float((by_class > 1 + ROUNDING).mean()) if binary else 0.0,
        values.ndim == 2 and values.shape[0] == values.shape[1] and bool((values == values.T).all()),
    )


def self_pairs(prediction: Tensor, target: Tensor) -> Iterator[SelfPairs]:
    """Describe scores of each row of a batch with every row, where that with itself is the highest of all."""
    if prediction.ndim != 2 or target.ndim != 1 or target.is_floating_point() or len(target) < FEWEST_PAIRS:
        return
    rows, columns = prediction.shape
    if rows != columns or len(target) != rows or rows > MOST_PAIRS:
        return
    scores = prediction.detach().float()
    itself, size = scores.diagonal(), scores.abs().max()
    if not bool((itself > 0).all()) or bool((itself.max() - itself.min()) > EQUAL * size):
        return  # of vectors of one length, the score with itself is the same in all rows
    if bool((scores - scores.T).abs().max() > EQUAL * size) or bool(
        (scores.max(dim=1).values > itself.max()).any()
    ):
        return
    others = (target != torch.arange(rows, device=target.device)).float().mean()
    yield SelfPairs(rows, float(itself.mean()), float(others))


def flattened(
    output: Tensor | None, prediction: Tensor, target: Tensor, base: Tensor | None
) -> FlattenedPair | None:
    """Return the shapes that scores and labels had before both were flattened in memory; None if they were not.

    Args:
        output: of the model.
        prediction: what the loss was given.
        target: likewise.
        base: what the target is a view of.
    """
    if output is None or base is None or output.ndim != 3 or base.ndim != 2 or prediction.ndim != 2:
        return None
    if base.numel() != target.numel() or output.numel() != prediction.numel() or len(prediction) != len(target):
        return None
    moved = output.data_ptr() != prediction.data_ptr() or base.data_ptr() != target.data_ptr()
    if moved or not all(tensor.is_contiguous() for tensor in (output, prediction, base, target)):
        return None
    return FlattenedPair(tuple(output.shape), tuple(base.shape))


def _aligned(given: Mapping[str, Any]) -> Iterator[AlignedTargets]:
    targets, blank = _numbers(given.get("targets")), given.get("blank", 0)
    frames, lengths = (_lengths(given.get(name)) for name in ("input_lengths", "target_lengths"))
    if targets is None or frames is None or lengths is None or not isinstance(blank, int):
        return
    if not lengths.size or lengths.shape != frames.shape or lengths.min() < 0:
        return
    if targets.ndim == 1:
        rows = np.split(targets, np.cumsum(lengths)[:-1])
    elif len(targets) == len(lengths):
        rows = [row[:length] for row, length in zip(targets, lengths, strict=True)]
    else:
        return
    needed = np.array([len(row) + int((row[1:] == row[:-1]).sum()) for row in rows])
    with_blank = sum(bool((row == blank).any()) for row in rows)
    short = int((frames < needed).sum())
    yield AlignedTargets(len(rows), blank, with_blank, short, int(frames.min()), int(lengths.max()))


def _scores(given: Any) -> Iterator[AlignedScores]:
    """Describe what a loss of aligned sequences takes for log-probabilities, shape (..., classes)."""
    if type(given) is not Tensor or given.ndim < 2 or not given.numel():
        return
    values = _numbers(given.reshape(-1, given.shape[-1])[:FRAMES].float())
    if values is None or not values.max() < np.inf or not (known := values[values > -np.inf]).size:
        return
    with np.errstate(over="ignore"):
        add_up = np.abs(np.exp(values).sum(axis=-1) - 1) <= ADDS_UP
    shares = (values >= 0).all() and bool((np.abs(values.sum(axis=-1) - 1) <= ADDS_UP).all())
    made: Literal["log_probabilities", "probabilities", "scores"] = "probabilities" if shares else "scores"
    yield AlignedScores(float(known.min()), float(known.max()), "log_probabilities" if add_up.all() else made)


def _lengths(given: Any) -> Array | None:
    values = _numbers(given) if isinstance(given, Tensor) else np.array(given) if given is not None else None
    return None if values is None or values.dtype.kind not in "iuf" else values.reshape(-1).astype(np.int64)


def _numbers(given: Any) -> Array | None:
    """Return a dense tensor as an array; None for others, and for large ones."""
    if type(given) is not Tensor or not 0 < given.numel() <= LARGEST:
        return None
    return to_array(given)
