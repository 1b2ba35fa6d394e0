"""Gradients of a copy of a PyTorch model: of a step, of a batch in parts."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.checks.accumulation import Parts, Vector
from diagnostics.collectors.checks.differences import dtype_of, rounding_of
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.pytorch.batch import (
    call_loss,
    call_model,
    checked_loss,
    loss_in,
    some_rows,
    split_batch,
)
from diagnostics.collectors.pytorch.data import to_device
from diagnostics.collectors.pytorch.examine.model_copy import ModelCopy
from diagnostics.collectors.pytorch.losses import ignored_label
from diagnostics.collectors.pytorch.model import check_runnable, device_of, uncompiled
from diagnostics.collectors.pytorch.state import kept
from diagnostics.collectors.shared.arrays import flat, is_tensor
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed
from diagnostics.errors import InvalidInput
from diagnostics.facts.checks import ParameterGradient

STEP = 1e-3  # of a parameter's norm: enough for a layer that starts at 0 to hand on a gradient
STEPS = 3  # LoRA's A gets its first gradient in the second step, what stands before it in the third

_BATCH_NORM = (nn.modules.batchnorm._BatchNorm,)


class TorchGradients:
    """Differentiates the loss of a batch by the parameters of a copy.

    Args:
        model: the user's; only copied.
        batch: a dict, or ``(inputs, target)``.
        loss_fn: of ``(what the model returns, target)``; None if the model returns its loss.
    """

    def __init__(self, model: nn.Module, batch: Any, loss_fn: Any) -> None:
        self._model = uncompiled(model)
        self._loss_fn = loss_fn
        self._copy = ModelCopy(self._model, lambda: loss_fn, loss_fn)
        with _said("the model"):
            check_runnable(self._model)
        self._batch = to_device(batch, device_of(self._model))

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Restore random states, gradients and buffers on leaving."""
        with kept((self._model, self._loss_fn), self._model, self._loss_fn), own_warnings_ignored(), own_run():
            yield

    def parameter_names(self) -> list[str]:
        """Name the trainable parameters."""
        return [name for name, parameter in self._model.named_parameters() if parameter.requires_grad]

    def step(self) -> list[ParameterGradient]:
        """Return the gradient of each trainable parameter in the first step; if it lacks one, in a few more."""
        model = self._fresh().train()
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._backward(model, self._batch)
        first = {name: _described(name, p) for name, p in trainable.items()}
        later = dict.fromkeys(first, 0.0)
        for _ in range(STEPS - 1):
            if all(one.reached or later[name] for name, one in first.items()):
                break
            _move(trainable.values())
            model.zero_grad(set_to_none=True)
            self._backward(model, self._batch)
            for name, parameter in trainable.items():
                norm = _described(name, parameter).norm
                later[name] = max(later[name], norm if norm is not None and math.isfinite(norm) else 0.0)
        return [
            ParameterGradient(name, one.size, one.norm, one.nonfinite, 0.0 if one.norm else later[name])
            for name, one in first.items()
        ]

    def parts(self, count: int, batch_statistics: bool) -> Parts:
        """Cut the batch into micro-batches; without dropout, so that the same gradient is to be expected."""
        size = self.rows()
        bounds = [round(number * size / count) for number in range(count + 1)]
        micro = [some_rows(self._batch, slice(start, stop), size) for start, stop in itertools.pairwise(bounds)]
        return Parts(
            sizes=tuple(stop - start for start, stop in itertools.pairwise(bounds)),
            labels=self._labels(micro),
            whole=lambda: self._gradient([self._batch], batch_statistics),
            part=lambda number: self._gradient([micro[number]], batch_statistics),
            by_user=lambda accumulate: self._by_user(accumulate, micro, batch_statistics),
            still=(lambda number: self._gradient([self._batch if number is None else micro[number]], False))
            if batch_statistics and any(isinstance(m, _BATCH_NORM) for m in self._model.modules())
            else None,
            rounding=max(rounding_of(dtype_of(p)) for p in self._model.parameters()),
        )

    def rows(self) -> int:
        """Return the number of rows of the batch; 0 if no tensor tells it."""
        inputs, target = split_batch(self._batch)
        sized = [value for value in (*flat(inputs).values(), target) if is_tensor(value) and value.ndim]
        return int(sized[0].shape[0]) if sized else 0

    def _gradient(self, batches: Sequence[Any], batch_statistics: bool) -> Vector:
        model = self._without_dropout(batch_statistics)
        for batch in batches:
            self._backward(model, batch)
        return _vector(model)

    def _by_user(
        self, accumulate: Callable[[Any, list[Any]], object], micro: list[Any], batch_statistics: bool
    ) -> Vector:
        model = self._without_dropout(batch_statistics)
        accumulate(model, copy.deepcopy(micro))
        return _vector(model)

    def _without_dropout(self, batch_statistics: bool) -> nn.Module:
        model = self._fresh().eval()
        for module in model.modules():
            if isinstance(module, _BATCH_NORM):
                module.train(batch_statistics)
            elif isinstance(module, nn.RNNBase):  # cuDNN has no backward pass in eval mode
                module.train()
                module.dropout = 0.0
        return model

    def _fresh(self) -> nn.Module:
        with _said("the model"):
            model = self._copy.fresh()
        model.zero_grad(set_to_none=True)
        return model

    def _backward(self, model: nn.Module, batch: Any) -> None:
        batch = copy.deepcopy(batch)
        with _said("the model on this batch"):
            outputs = call_model(model, batch, makes_loss=self._loss_fn is None)
            given = loss_in(outputs) if self._loss_fn is None else call_loss(self._copy.loss, outputs, batch)
            loss = checked_loss(given, outputs, self._loss_fn)
            if loss.requires_grad:
                loss.backward()

    def _labels(self, micro: Sequence[Any]) -> tuple[int, ...] | None:
        ignored = ignored_label(self._loss_fn)
        targets = [split_batch(part)[1] for part in micro]
        counts = [
            int((target != ignored).sum())
            for target in targets
            if is_tensor(target) and not target.is_floating_point()
        ]
        whole = [target.numel() for target in targets if is_tensor(target)]
        return tuple(counts) if len(counts) == len(micro) and counts != whole else None


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Say in plain words why something of the user's could not be run."""
    try:
        yield
    except (StageFailed, CannotJudge) as reason:
        raise InvalidInput(f"The gradients cannot be checked: {reason}") from None
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"The gradients cannot be checked: calling {what} raised {type(error).__name__}: {error}. Pass a "
            "batch as the training loop gets it, (inputs, target) or a dict, and the loss_fn that it uses."
        ) from error


def _described(name: str, parameter: Tensor) -> ParameterGradient:
    gradient = parameter.grad
    if gradient is None:
        return ParameterGradient(name, parameter.numel(), None)
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    values = values.detach().double()
    return ParameterGradient(name, parameter.numel(), float(values.norm()), int((~values.isfinite()).sum()))


def _move(parameters: Any) -> None:
    """Take a small step against the gradient, of the same share of each parameter."""
    with torch.no_grad():
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is None:
                continue
            gradient = gradient.to_dense() if gradient.is_sparse else gradient
            length = float(gradient.double().norm())
            if length > 0 and math.isfinite(length):
                size = float(parameter.double().norm()) or 1.0
                parameter.add_(gradient, alpha=-STEP * size / length)


def _vector(model: nn.Module) -> Vector:
    found: Vector = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.grad is not None:
            gradient = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
            found[name] = gradient.detach().double().cpu().numpy().ravel()
    return found
