"""Knows the optimizers of a script, and which parameters they hold."""

from __future__ import annotations

import weakref

from torch import nn
from torch.optim import Optimizer


class ScriptOptimizers:
    """The optimizers that a script has made, without keeping them alive."""

    def __init__(self) -> None:
        self._references: list[weakref.ref[Optimizer]] = []

    @property
    def count(self) -> int:
        """How many were made."""
        return len(self._references)

    def add(self, optimizer: Optimizer) -> None:
        """Add one, which may hold no parameters yet."""
        self._references.append(weakref.ref(optimizer))

    def living(self) -> list[Optimizer]:
        """List those that the script still has."""
        return [optimizer for reference in self._references if (optimizer := reference()) is not None]

    def all_held(self) -> set[int]:
        """Return the identities of all parameters that they hold."""
        return {identity for optimizer in self.living() for identity in held_by(optimizer)}

    def is_meant_for(self, optimizer: Optimizer, model: nn.Module) -> bool:
        """Whether an optimizer holds the parameters of a discarded model with the same architecture.

        A target network gets no gradient. An optimizer of a temperature or an image has tensors of other shapes,
        and one of float32 copies of half-precision weights has another dtype.
        """
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        taken = self.all_held()
        kinds = {(parameter.shape, parameter.dtype) for parameter in trainable}
        return (
            all(id(parameter) not in taken for parameter in trainable)
            and any(parameter.grad is not None for parameter in trainable)
            and {(p.shape, p.dtype) for group in optimizer.param_groups for p in group["params"]} == kinds
        )


def held_by(optimizer: Optimizer) -> set[int]:
    """Return the identities of the parameters that an optimizer holds."""
    groups = getattr(optimizer, "param_groups", ())  # none yet while it is being made
    return {id(parameter) for group in groups for parameter in group["params"]}
