"""Remembers the rows that a script adds to the embedding of a model of transformers, for new tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.inputs import AddedTokens
from diagnostics.taps import transformers as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

from .model import configuration, uncompiled

SELECTED = "trainable_tokens"  # in the name of a parameter by which PEFT trains some rows of an embedding


@dataclass(frozen=True)
class _Rows:
    first: int
    total: float  # of the rows that were added, as they were initialised


class EmbeddingRows:
    """By model, the rows that `resize_token_embeddings` added."""

    def __init__(self) -> None:
        self._added: IdentityMap[nn.Module, _Rows] = IdentityMap()
        self._before: IdentityMap[nn.Module, int | None] = IdentityMap()  # rows of those that are being resized

    def listen(self, guard: FaultGuard) -> Unsubscribe:
        """Observe from now on; return what ends it. Faults go to the guard."""
        resize = taps.resize_token_embeddings
        return subscribe(guard.attempt, (resize.before, self._resizes), (resize.after, self._resized))

    def added_to(self, model: nn.Module) -> AddedTokens | None:
        """Return the tokens that were added to a model, or to one that it wraps; None if there are none.

        Rows that the script has written since are as good as trained: it may have loaded them.
        """
        for module in uncompiled(model).modules():
            rows = self._added.get(module)
            if rows is None:
                continue
            weight = _embedding(module)
            if weight is None or not rows.first < len(weight) or _total(weight, rows.first) != rows.total:
                return None
            trained = any(
                parameter.requires_grad
                and (SELECTED in name or (parameter.ndim == 2 and len(parameter) == len(weight)))
                for name, parameter in model.named_parameters()
            )
            padding = getattr(configuration(module), "pad_token_id", None)
            return AddedTokens(rows.first, len(weight), padding if isinstance(padding, int) else None, trained)
        return None

    def _resizes(self, model: nn.Module, *_arguments: Any, **_options: Any) -> None:
        self._before[model] = _num_rows(model)

    def _resized(self, _result: Any, model: nn.Module, *_arguments: Any, **_options: Any) -> None:
        weight, before = _embedding(model), self._before.pop(model, None)
        if before is not None and weight is not None and before < len(weight):
            earlier = self._added.get(model)
            first = before if earlier is None else min(before, earlier.first)
            self._added[model] = _Rows(first, _total(weight, first))


def _embedding(model: Any) -> Tensor | None:
    weight = getattr(model.get_input_embeddings(), "weight", None)
    return weight if isinstance(weight, Tensor) and weight.ndim == 2 and not weight.is_meta else None


def _num_rows(model: Any) -> int | None:
    weight = _embedding(model)
    return None if weight is None else len(weight)


def _total(weight: Tensor, first: int) -> float:
    with torch.no_grad():
        return float(weight[first:].double().sum())


embedding_rows = EmbeddingRows()
