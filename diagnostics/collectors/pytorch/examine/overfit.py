"""Trains copies of a module on one batch, following a plan; a classifier's on a few further ones, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.batch import (
    distinct_rows,
    is_single,
    prediction_if_any,
    prediction_in,
    split_batch,
)
from diagnostics.collectors.pytorch.losses import REGRESSIONS, unit_scale_loss
from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder
from diagnostics.collectors.pytorch.symmetry import rows_alike
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_plan import (
    POOL_BATCHES,
    Plan,
    Pool,
    Run,
    Stopwatch,
    larger,
    overfit,
    pool_of,
)
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.facts.pipeline import Fact


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


class BatchOverfit:
    """Trains copies on one batch.

    Args:
        batch: the examined one.
        loss: which loss it has.
        fresh: makes a copy of the user's model.
        compute: returns loss and outputs of a model on a batch.
        predict: returns the outputs alone.
        take_batch: makes a later batch, by its number.
    """

    def __init__(
        self,
        batch: Any,
        loss: Recognised,
        *,
        fresh: Callable[[], nn.Module],
        compute: Callable[[nn.Module, Any], tuple[Any, Any]],
        predict: Callable[[nn.Module, Any], Any],
        take_batch: Callable[[int], Any],
    ) -> None:
        self._batches = [batch]  # that a copy is trained on in turn
        self._loss, self._target = loss, split_batch(batch)[1]
        self._fresh, self._compute, self._predict, self._take_batch = fresh, compute, predict, take_batch

    def facts(
        self,
        rate: float | None,
        build: OptimizerBuilder | None,
        warms_up: bool | None,
        num_trainable: int,
        seconds: float,
    ) -> Iterator[Fact]:
        """Train as `overfit` plans it.

        Args:
            rate: the user's full learning rate; None if there is none.
            build: builds the user's optimizer for a copy; None if that is not known.
            warms_up: whether it starts with a lower rate; None if not known.
            num_trainable: scalars in the trainable parameters.
            seconds: after which no further run is begun.
        """
        trainer = CopyTrainer(
            fresh=self._fresh,
            step=lambda model, number: self._compute(model, self._batches[number])[0],
            predict=lambda model: prediction_if_any(self._predict, model, self._batches[0]),
            optimizer=build,
            at_unit_scale=self._at_unit_scale,
        )
        yield from overfit(
            trainer.run,
            floor=self._loss.floor,
            distinct_inputs=1 if is_single(self._target) else distinct_rows(split_batch(self._batches[0])[0]),
            their_rate=rate if build is not None else None,
            warms_up=warms_up,
            pool=self._pool,
            rescalable=self._loss.kind in REGRESSIONS,
            num_trainable=num_trainable,
            seconds=seconds,
        )

    def _pool(self) -> Pool | None:
        """Take further batches, for a classifier of whole rows; None if there are none."""
        labels, classes = self._target, self._loss.num_classes
        if classes is None or self._loss.class_weights or not isinstance(labels, Tensor) or labels.ndim != 1:
            return None
        seen = [labels]
        del self._batches[1:]
        try:
            for number in range(1, POOL_BATCHES):
                batch = self._take_batch(number)
                more = split_batch(batch)[1]
                if more.shape != labels.shape or more.min() < 0 or more.max() >= classes:
                    break
                self._batches.append(batch)
                seen.append(more)
        except StageFailed:  # there are no more
            pass
        return pool_of([part.cpu().numpy() for part in seen], self._loss.floor or 0.0, classes)

    def _at_unit_scale(self, model: nn.Module) -> Tensor:
        """Compute the regression loss of the batch as if its targets had mean 0 and standard deviation 1."""
        prediction, floor = prediction_in(self._predict(model, self._batches[0])), self._loss.floor
        assert prediction is not None
        assert floor is not None
        return floor * unit_scale_loss(self._loss.kind, prediction, self._target)


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
