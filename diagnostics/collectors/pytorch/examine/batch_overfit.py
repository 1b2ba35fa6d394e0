"""Trains copies of a model on the examined batch; a classifier's on a few further ones, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_plan import POOL_BATCHES, Pool, overfit, pool_of
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.facts.pipeline import Fact

from .overfit import CopyTrainer


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
