"""Notices models whose weights a script changes itself, without an optimizer."""

from __future__ import annotations

from torch import Tensor, nn

from diagnostics.collectors.isolation.identity import IdentityMap

CHANGES = 2  # of the weights between backward passes, after which the script trains them
LOOKS = 20  # backward passes of a model, after which it counts as not trained
NUMBERS = 64  # of each parameter that are compared, the first


class HandUpdates:
    """Compares some weights of each model at its backward passes, until they have changed or are left alone."""

    def __init__(self) -> None:
        self._before: IdentityMap[nn.Module, list[Tensor]] = IdentityMap()
        self._changes: IdentityMap[nn.Module, int] = IdentityMap()
        self._looks: IdentityMap[nn.Module, int] = IdentityMap()

    def found(self, modules: list[nn.Module]) -> list[nn.Module]:
        """Return the modules whose weights have changed between backward passes.

        Args:
            modules: that have trainable parameters; called when the gradients of a backward pass are there.
        """
        for module in modules:
            looks = self._looks[module] = self._looks.get(module, 0) + 1
            if looks > LOOKS:
                continue
            trained = [p for p in module.parameters() if p.grad is not None]
            now = [parameter.detach().reshape(-1)[:NUMBERS].clone() for parameter in trained]
            before = self._before.get(module)
            if before is not None and len(before) == len(now):
                changed = any(not bool((one == other).all()) for one, other in zip(before, now, strict=True))
                self._changes[module] = self._changes.get(module, 0) + changed
            self._before[module] = now
        return [module for module in modules if self._changes.get(module, 0) >= CHANGES]
