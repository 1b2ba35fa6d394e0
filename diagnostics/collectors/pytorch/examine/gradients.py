"""Differentiates the loss of a batch."""

from __future__ import annotations

from torch import Tensor, nn

from diagnostics.collectors.shared.pipeline import users_code
from diagnostics.facts.pipeline import GradientFacts


def gradient_facts(model: nn.Module, loss: Tensor) -> GradientFacts:
    """Run the backward pass of a loss, and describe the gradients of a model that has none yet."""
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    total = sum(p.numel() for p in trainable.values())
    if not trainable or not loss.requires_grad:
        return GradientFacts(False, {}, {name: p.numel() for name, p in trainable.items()}, total)
    with users_code():
        loss.backward()
    norms = {name: float(p.grad.norm()) for name, p in trainable.items() if p.grad is not None}
    unreached = {name: p.numel() for name, p in trainable.items() if p.grad is None}
    return GradientFacts(bool(norms), norms, unreached, total)
