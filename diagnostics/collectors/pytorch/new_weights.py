"""Remembers the weights of a model that a checkpoint did not hold, and that are still as they were initialised."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.taps import torch as torch_taps
from diagnostics.taps import transformers as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

from .model import uncompiled

MOST = 0.5  # of a module's numbers: a checkpoint that lacks more is that of an adapter, or of a part


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
