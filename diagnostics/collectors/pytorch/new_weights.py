"""Remembers weights that are still as initialised: those that a checkpoint lacks, and rows for new tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.inputs import AddedTokens
from diagnostics.taps import torch as torch_taps
from diagnostics.taps import transformers as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

from .model import configuration, uncompiled

MOST = 0.5  # of a module's numbers: a checkpoint that lacks more is that of an adapter, or of a part
SELECTED = "trainable_tokens"  # in the name of a parameter by which PEFT trains some rows of an embedding


class NewWeights:
    """The sum of each matrix, by parameter, that a load of its model left as it was."""

    def __init__(self) -> None:
        self._sums: IdentityMap[Tensor, float] = IdentityMap()

    def listen(self, guard: FaultGuard) -> Unsubscribe:
        """Observe `load_state_dict` from now on; return what ends it. Faults go to the guard."""
        return subscribe(guard.attempt, (torch_taps.module_load_state_dict.after, self._loaded))

    def listen_to_transformers(self, guard: FaultGuard) -> Unsubscribe:
        """Observe `from_pretrained` from now on."""
        return subscribe(guard.attempt, (taps.log_state_dict_report.after, self._reported))

    def unchanged_in(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """Return those that were never changed, by name."""
        return {
            name: parameter
            for name, parameter in (uncompiled(model).named_parameters() if len(self._sums) else ())
            if (before := self._sums.get(parameter)) is not None and before == _sum(parameter)
        }

    def frozen_in(self, model: nn.Module) -> dict[str, int]:
        """Return the sizes, by name, of those that require no gradient and were never changed."""
        unchanged = self.unchanged_in(model).items()
        return {name: parameter.numel() for name, parameter in unchanged if not parameter.requires_grad}

    def _reported(
        self, _result: Any, *_arguments: Any, model: Any = None, loading_info: Any = None, **_: Any
    ) -> None:
        if isinstance(model, nn.Module) and loading_info is not None:
            self._take(model, {*loading_info.missing_keys, *(key[0] for key in loading_info.mismatched_keys)})

    def _loaded(self, result: Any, module: nn.Module, *_arguments: Any, **_options: Any) -> None:
        self._take(module, set(getattr(result, "missing_keys", ())))

    def _take(self, module: nn.Module, missing: set[str]) -> None:
        if not missing:
            return
        parameters = dict(module.named_parameters())
        new = {name: parameter for name, parameter in parameters.items() if name in missing}
        size = sum(parameter.numel() for parameter in new.values())
        if size > MOST * sum(parameter.numel() for parameter in parameters.values()):
            return
        for parameter in new.values():
            if (total := _sum(parameter)) is not None:
                self._sums[parameter] = total


def _sum(parameter: Tensor) -> float | None:
    """Return the sum of a matrix; None of others, and of one whose numbers are not at hand."""
    plain = type(parameter) in (Tensor, nn.Parameter) and not parameter.is_meta  # neither fake nor quantized
    if not plain or parameter.ndim < 2 or not parameter.is_floating_point():
        return None
    return float(parameter.detach().double().sum())


new_weights = NewWeights()


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
