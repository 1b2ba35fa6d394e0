"""Trains a copy of a module on one batch, following a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder
from diagnostics.collectors.pytorch.symmetry import rows_alike
from diagnostics.collectors.shared.overfit_plan import Stopwatch, larger
from diagnostics.collectors.shared.overfit_run import Plan, Run


class CopyTrainer:
    """Trains copies of a model, each from where the user's model stands.

    Args:
        fresh: makes a copy of the user's model; it is changed.
        step: computes the loss of a batch, by its number: 0 for the one that everything else is computed of.
        predict: computes the prediction of the batch.
        at_unit_scale: computes a regression loss with targets brought to unit scale, times its floor.
        optimizer: builds the user's kind of optimizer for a model, all its rates times a factor; None if that is
            not known.
    """

    def __init__(
        self,
        fresh: Callable[[], nn.Module],
        step: Callable[[nn.Module, int], Any],
        predict: Callable[[nn.Module], Tensor | None],
        at_unit_scale: Callable[[nn.Module], Tensor],
        optimizer: OptimizerBuilder | None,
    ) -> None:
        self._fresh, self._step, self._predict = fresh, step, predict
        self._at_unit_scale, self._optimizer = at_unit_scale, optimizer

    def run(self, plan: Plan) -> Run:
        """Train from the start according to the plan."""
        model = self._fresh()
        at_first = self._spread_of(model)
        model.train()
        for module in model.modules():
            if isinstance(module, nn.modules.dropout._DropoutNd):
                module.eval()
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if plan.theirs and self._optimizer is not None:
            optimizer = self._optimizer(model, plan.factor)
        else:
            optimizer = torch.optim.AdamW(trainable.values(), lr=plan.learning_rate, weight_decay=0.0)
        alike = [name for name, p in trainable.items() if rows_alike(p) and not _is_adapter(name, p, model)]
        losses: list[float] = []
        ratios: list[float] = []
        watch = Stopwatch()
        for _ in range(plan.steps):
            optimizer.zero_grad(set_to_none=True)
            loss = self._at_unit_scale(model) if plan.rescaled else self._step(model, len(losses) % plan.batches)
            loss.backward()
            losses.append(float(loss.detach()))
            watch.step()
            if plan.is_done(losses):
                break
            before = [p.detach().clone() for p in trainable.values()]
            optimizer.step()
            ratios.append(_update_ratio(before, list(trainable.values())))
        model.zero_grad(set_to_none=True)
        return Run(
            losses=tuple(losses),
            update_ratios=tuple(ratios),
            output_spread=larger(at_first, self._spread_of(model)),
            symmetric=tuple(name for name in alike if rows_alike(trainable[name])),
            pace=watch.pace,
        )

    def _spread_of(self, model: nn.Module) -> float | None:
        with torch.no_grad():
            return _spread(self._predict(model.eval()))


def _is_adapter(name: str, weight: Tensor, model: nn.Module) -> bool:
    """Whether a weight of zeros adds to a frozen one of as many units: the zero factor of a low-rank adapter.

    What the frozen weight gives differs from unit to unit, so the units are no copies of each other.
    """
    if bool(weight.detach().any()):
        return False
    owner = name
    for _ in range(3):  # base.lora_B.default.weight: the frozen weight is the layer's own, or its base_layer's
        owner = owner.rpartition(".")[0]
        for other in model.get_submodule(owner).parameters():
            if not other.requires_grad and other.ndim == weight.ndim and other.shape[0] == weight.shape[0]:
                return not rows_alike(other)
        if not owner:
            break
    return False


def _update_ratio(before: list[Tensor], after: list[Tensor]) -> float:
    """Return the median over weights (biases and scales left out) of |update| / |weight|."""
    ratios = []
    for old, new in zip(before, after, strict=True):
        size = float(old.norm()) if old.ndim > 1 else 0.0
        if size > 0:
            ratios.append(float((new.detach() - old).norm()) / size)
    return float(np.median(ratios)) if ratios else 0.0


def _spread(prediction: Tensor | None) -> float | None:
    """Return the largest standard deviation across examples, over the root mean square."""
    if prediction is None or prediction.ndim == 0 or prediction.shape[0] < 2:
        return None
    values = prediction.detach().float().reshape(prediction.shape[0], -1)
    scale = float(values.square().mean().sqrt())
    return float(values.std(0, unbiased=False).max()) / scale if scale > 0 else 0.0
