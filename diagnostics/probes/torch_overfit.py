"""Trains a copy of a model on one batch, to see whether model, loss and labels can come together at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.facts import OverfitFacts

# AdamW's usual rate first; a wide transformer from scratch needs a smaller one, a large target scale a larger
# one. Only a model that fails at the first sees the others.
LEARNING_RATES = (1e-3, 1e-4, 1e-2)
STEPS = 30  # a run; a healthy classifier passes the floor in 5 to 20
STEPS_WITHOUT_FLOOR = 10  # only to move the weights, where no loss can be called low enough
ENOUGH = 0.5  # of the floor: then the copy tells its examples apart, and more steps would prove no more


def overfit_one_batch(
    model: nn.Module,
    *,
    start: nn.Module,
    step: Callable[[nn.Module], Any],
    predict: Callable[[nn.Module], Tensor | None],
    floor: float | None,
    distinct_inputs: int,
) -> OverfitFacts:
    """Train `model`, a copy, with dropout off and an optimizer of our own.

    The question is whether the loss can fall, not whether the user's learning rate is good: that is another
    rule's. So each rate in `LEARNING_RATES` is tried until one passes well below the floor.

    Args:
        model: the copy; it is changed.
        start: the model it was copied from; its weights are read to start again.
        step: computes the loss of the batch.
        predict: computes the prediction of the batch.
        floor: the loss of the best constant answer; None if there is no such thing.
        distinct_inputs: passed on to the facts.
    """
    best: list[float] = []
    spread: float | None = None
    tried: list[float] = []
    for rate in LEARNING_RATES if floor else LEARNING_RATES[:1]:
        if tried:
            model.load_state_dict(start.state_dict())
        tried.append(rate)
        losses = _train(model, rate, step, floor)
        if not best or min(losses) < min(best):
            best = losses
            with torch.no_grad():
                spread = _spread(predict(model.eval()))
        if not floor or min(best) <= ENOUGH * floor:
            break
    return OverfitFacts(tuple(best), tuple(tried), distinct_inputs, spread)


def _train(model: nn.Module, rate: float, step: Callable[[nn.Module], Any], floor: float | None) -> list[float]:
    model.train()
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.eval()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0.0)
    losses = []
    for _ in range(STEPS if floor else STEPS_WITHOUT_FLOOR):
        optimizer.zero_grad(set_to_none=True)
        loss = step(model)
        loss.backward()
        losses.append(float(loss.detach()))
        if floor and losses[-1] <= ENOUGH * floor:
            break
        optimizer.step()
    return losses


def _spread(prediction: Tensor | None) -> float | None:
    """Return the largest standard deviation across examples, over the root mean square."""
    if prediction is None or prediction.ndim == 0 or prediction.shape[0] < 2:
        return None
    values = prediction.detach().float().reshape(prediction.shape[0], -1)
    scale = float(values.square().mean().sqrt())
    return float(values.std(0, unbiased=False).max()) / scale if scale > 0 else 0.0
