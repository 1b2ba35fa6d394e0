"""Finds optimizers that made one step of a model each, and had kept something of it for the next."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.discover.loop_probe import LoopProbe
from diagnostics.facts.calls import ObjectLedger

REMADE = 20  # steps in a row, each by another optimizer: no test, and no phase of a training


class RemadeOptimizers(LoopProbe):
    """Counts them, and reports once what was counted."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._forgetful: IdentityMap[Any, str] = IdentityMap()  # by what watched it: the optimizer's class
        self._times: IdentityMap[nn.Module, int] = IdentityMap()

    def on_step(self, optimizer: Optimizer, watching: Any, steps: int) -> None:
        """Record the first step of a loop, and the second."""
        if steps == 1 and _keeps_state(optimizer):
            self._forgetful[watching] = type(optimizer).__name__
        elif steps == 2:
            self._forgetful.pop(watching, None)

    def on_loop(self, model: nn.Module, watching: Any, before: Any) -> None:
        """Record a new loop of a model."""
        if before is None:
            return
        name = self._forgetful.pop(before, None)
        self._times[model] = 0 if name is None else self._times.get(model, 0) + 1
        if name is not None and self._times[model] == REMADE:
            ledger = ObjectLedger(type(model).__name__, optimizer=name, lone_steps=REMADE)
            self.subject.report(before, (ledger,))

    def on_load(self, holder: Any, state: Any = None, *_: Any, **options: Any) -> None:
        """Begin again: the script loads weights, or the state of an optimizer."""
        self._times.clear()
        self._forgetful.clear()

    def is_known(self, model: nn.Module) -> bool:
        """Whether it was reported of a model, so that further loops of it tell no more."""
        return self._times.get(model, 0) >= REMADE


def _keeps_state(optimizer: Optimizer) -> bool:
    """Whether a step left tensors for the next; LBFGS makes many steps in one call."""
    return not isinstance(optimizer, LBFGS) and any(
        isinstance(value, Tensor) for state in optimizer.state.values() for value in state.values()
    )
