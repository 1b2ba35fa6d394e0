"""Trains copies of a module on one batch, a few further ones, or chosen examples, following a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.batch import (
    checked_loss,
    distinct_rows,
    is_single,
    prediction_if_any,
    prediction_in,
    some_rows,
    split_batch,
)
from diagnostics.collectors.pytorch.losses import (
    REGRESSIONS,
    class_axis,
    ignored_label,
    recognise_loss,
    unit_scale_loss,
)
from diagnostics.collectors.pytorch.model import rows_alike
from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.shared.arrays import flat, to_array
from diagnostics.collectors.shared.loss_match import AGREEMENT, Recognised
from diagnostics.collectors.shared.overfit_plan import POOL_BATCHES, Pool, Stopwatch, larger, overfit, pool_of
from diagnostics.collectors.shared.overfit_run import Plan, Run
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, UsersCodeRaised, users_code
from diagnostics.collectors.subset_trials.answers import Answers, Seen, binary_answers, class_answers
from diagnostics.collectors.subset_trials.choice import MIN_EXAMPLES, MOST_BATCHES, Rows, digests
from diagnostics.facts.loss_contracts import LossKind
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


class TorchSubsets:
    """Trains copies on chosen examples; see `diagnostics.collectors.subset_trials.choice.Subsets`.

    Args:
        batch: the examined one.
        loss: which loss it has.
        loss_fn: the user's; None if the model returns its loss.
        classes: seen in the data, empty if there are none.
        model: the user's; only counted.
        fresh: makes a copy of it.
        compute: returns loss and outputs of a model on a batch.
        predict: returns the outputs alone.
        take_batch: makes a later batch, by its number.
        rate: the user's learning rate; None if not known.
        build: builds the user's optimizer for a copy; None if that is not known.

    Raises:
        CannotJudge: single examples cannot be cut out of the batch.
    """

    rescalable = True

    def __init__(
        self,
        batch: Any,
        loss: Recognised,
        loss_fn: Any,
        classes: frozenset[int],
        *,
        model: nn.Module,
        fresh: Callable[[], nn.Module],
        compute: Callable[[nn.Module, Any], tuple[Any, Any]],
        predict: Callable[[nn.Module, Any], Any],
        take_batch: Callable[[int], Any],
        rate: float | None,
        build: OptimizerBuilder | None,
    ) -> None:
        self.kind: LossKind = loss.kind
        self.rate = (rate or 0.0) if build is not None else None
        self.optimizer = "their optimizer"
        self.num_parameters = sum(p.numel() for p in model.parameters())
        self.num_trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
        self._loss, self._loss_fn, self._build = loss, loss_fn, build
        self._fresh, self._compute, self._predict = fresh, compute, predict
        self._floors: dict[tuple[int, ...], float] = {}  # of the loss, by the rows chosen
        self._batch, self._size = _gathered(batch, classes, take_batch)
        size = _size_of(batch)
        self.rows = _rows(self._batch, self._size, classes, size if size >= MIN_EXAMPLES else self._size)

    def run(self, chosen: Sequence[int], plan: Plan, seen: Seen) -> Run:
        """See `Subsets.run`.

        Raises:
            UsersCodeRaised: model or loss cannot take so few examples.
        """
        batch = some_rows(self._batch, torch.as_tensor(chosen), self._size)

        def step(model: nn.Module, _number: int) -> Tensor:
            computed, outputs = self._compute(model, batch)
            loss = checked_loss(computed, outputs, self._loss_fn)
            value = float(loss.detach())
            if not seen.known_first:
                found = self._recognised(value, outputs, batch)
                self._floors[tuple(chosen)] = found.floor or 0.0
                seen.start(found)
            seen.add(value, self._answers(value, outputs, batch))
            return loss

        def at_unit_scale(model: nn.Module) -> Tensor:
            floor = self._floors[tuple(chosen)]
            if not seen.known_first:
                seen.start(Recognised(self.kind, floor))
            prediction, target = prediction_in(self._predict(model, batch)), split_batch(batch)[1]
            assert prediction is not None
            loss = floor * unit_scale_loss(self.kind, prediction, target)
            seen.add(float(loss.detach()), None)
            return loss

        trainer = CopyTrainer(
            fresh=self._fresh,
            step=step,
            predict=lambda model: prediction_if_any(self._predict, model, batch),
            at_unit_scale=at_unit_scale,
            optimizer=None if self._build is None else self._named,
        )
        with random_states_kept(), users_code():  # seeds them
            return trainer.run(plan)

    def _named(self, model: nn.Module, factor: float) -> torch.optim.Optimizer:
        assert self._build is not None
        made = self._build(model, factor)
        self.optimizer = type(made).__name__
        return made

    def _recognised(self, value: float, outputs: Any, batch: Any) -> Recognised:
        target = split_batch(batch)[1]
        return recognise_loss(value, prediction_in(outputs), target, self._loss_fn, ignored_label(self._loss_fn))

    def _answers(self, value: float, outputs: Any, batch: Any) -> Answers | None:
        prediction, target = prediction_in(outputs), split_batch(batch)[1]
        if prediction is None or not isinstance(target, Tensor) or not prediction.ndim or not target.ndim:
            return None
        scores, reads = prediction.detach().float(), self._loss.reads
        if self.kind == "cross_entropy":
            first = 1 if isinstance(self._loss_fn, nn.CrossEntropyLoss | nn.NLLLoss) else -1
            axis = class_axis(scores, target, likely=first)
            if axis is None:
                return None
            ignored = ignored_label(self._loss_fn)
            scores, labels = _aligned(scores.movedim(axis, -1), target, value, ignored)
            return class_answers(scores.cpu().numpy(), labels.cpu().numpy(), reads, ignored)
        if self.kind == "binary_cross_entropy" and scores.numel() == target.numel():
            wanted = target.detach().float().cpu().numpy()
            return binary_answers(scores.reshape(target.shape).cpu().numpy(), wanted, reads)
        if self.kind == "other" or scores.shape[0] != target.shape[0]:
            return None
        return Answers(scores.reshape(len(scores), -1)[:, 0].cpu().numpy())


def _aligned(scores: Tensor, labels: Tensor, value: float, ignored: int) -> tuple[Tensor, Tensor]:
    """Pair the scores (rows, tokens, classes) of a language model with the next tokens, if its loss does so."""
    if scores.ndim != 3 or labels.shape[1] < 2:
        return scores, labels
    shifted = scores[:, :-1], labels[:, 1:]
    loss = nn.functional.cross_entropy(shifted[0].flatten(0, 1), shifted[1].flatten(), ignore_index=ignored)
    return shifted if abs(float(loss) - value) <= AGREEMENT * max(abs(value), 1e-6) else (scores, labels)


def _size_of(batch: Any) -> int:
    """Return the number of examples in a batch.

    Raises:
        CannotJudge: its parts do not tell.
    """
    inputs, target = split_batch(batch)
    parts = [part for part in flat(inputs).values() if isinstance(part, Tensor) and part.ndim]
    if is_single(target):
        raise CannotJudge("a batch is a single example without a first axis, so there are none to choose from")
    size = target.shape[0] if isinstance(target, Tensor) else parts[0].shape[0] if parts else 0
    if any(part.layout != torch.strided for part in parts):
        raise CannotJudge("single examples cannot be cut out of a batch that holds a sparse tensor")
    if not size or not any(part.shape[0] == size for part in parts):
        raise CannotJudge("single examples cannot be cut out of a batch: its parts share no first axis")
    return int(size)


def _gathered(batch: Any, classes: frozenset[int], take_batch: Callable[[int], Any]) -> tuple[Any, int]:
    """Join a batch with the next ones until there is every class, and a few examples; return their number."""
    size = _size_of(batch)
    for number in range(1, MOST_BATCHES):
        if size >= MIN_EXAMPLES and classes <= _classes_in(batch):
            break
        try:
            more = take_batch(number)
            batch = _joined(batch, more, size, added := _size_of(more))
        except (CannotJudge, StageFailed, UsersCodeRaised, _Differs):  # there are no more, or none that fit
            break
        size += added
    return batch, size


class _Differs(Exception):
    """Two batches cannot be joined."""


def _joined(one: Any, other: Any, size: int, added: int) -> Any:
    """Join the examples of two batches of the same structure."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if not one.ndim or one.shape[0] != size or other.shape[:1] != (added,) or one.shape[1:] != other.shape[1:]:
            raise _Differs
        return torch.cat([one, other])
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        return {name: _joined(part, other[name], size, added) for name, part in one.items()}
    if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
        parts = [_joined(*both, size, added) for both in zip(one, other, strict=True)]
        return type(one)(*parts) if hasattr(one, "_fields") else type(one)(parts)
    raise _Differs


def _classes_in(batch: Any) -> frozenset[int]:
    target = split_batch(batch)[1]
    if not isinstance(target, Tensor) or target.is_floating_point() or target.ndim != 1:
        return frozenset()
    return frozenset(map(int, target.tolist()))


def _rows(batch: Any, size: int, classes: frozenset[int], wanted: int) -> Rows:
    inputs, target = split_batch(batch)
    given = [array for part in flat(inputs).values() if (array := to_array(part)) is not None and array.ndim]
    shown = digests([array for array in given if len(array) == size], size)
    labels = None if target is None else to_array(target)
    if labels is None or labels.shape[:1] != (size,):
        return Rows(shown, shown, None, frozenset(), wanted)
    values = labels.reshape(size, -1)[:, 0].astype(np.float64) if labels.size == size else None
    indices = labels.ndim == 1 and labels.dtype.kind in "iu"
    return Rows(shown, digests([labels], size), values, classes if indices else frozenset(), wanted)
