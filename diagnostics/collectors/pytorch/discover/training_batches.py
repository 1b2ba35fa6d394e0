"""Records the batches of a loop, so that copies of its model can be trained on them when the script has ended.

The target is what the loss is given, if it is one call of a common function. Of any other loss, as one that is
written out, the gradient of the output is recorded, from which the targets of a known formula can be recovered.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.collectors.shared.target_recovery import recovered
from diagnostics.taps import torch as taps
from diagnostics.taps.exchanged_code import Listener, overheard
from diagnostics.taps.tap import subscribe

from .first_step_pipeline import FirstStepPipeline

MOST = 150  # batches
MOST_BYTES = 16 * 2**20  # of them all
TARGET = "target of the loss"
AGREES, MOSTLY = 2e-3, 0.9  # relative, of a loss and the formula's; share of the batches
FUNCTIONS = {
    "softmax": "cross_entropy",
    "logits": "binary_cross_entropy_with_logits",
    "probabilities": "binary_cross_entropy",
    "squared": "mse_loss",
}
"""By formula of `target_recovery`: the function in `torch.nn.functional` that computes it."""


@dataclass(frozen=True)
class TrainedBatch:
    """One batch, in copies that stay on the device.

    Attributes:
        inputs: of the model, by path; see `named_tensors`.
        target: of the loss.
        shape: of the prediction that the loss was given.
        rate: the largest learning rate of the optimizer.
    """

    inputs: Mapping[str, Tensor]
    target: Tensor
    shape: tuple[int, ...]
    rate: float | None


@dataclass
class _Pass:
    """A call of the model whose loss is not one call of a function."""

    inputs: Mapping[str, Tensor]
    rate: float | None
    output: Tensor
    gradient: Tensor | None = None
    loss: Tensor | None = None


class TrainingBatches:
    """Records the batches of a model's training, with the targets that its loss is given.

    Attributes:
        batches: so far.
        idle: names of the modules that were in evaluation mode at the first of them.
        clip: the latest norm that gradients were clipped to; None if they never were.
    """

    def __init__(self, step: FirstStepPipeline, function: str, guard: FaultGuard) -> None:
        """Record from the first step on, until there are enough.

        Args:
            step: which has one optimizer.
            function: the name of the loss in `torch.nn.functional`; empty for a loss that is not one call of one.
            guard: runs the work.
        """
        self._model, self._optimizer = weakref.ref(step.model), weakref.ref(step.optimizers[0])
        self._guard = guard
        self.batches: list[TrainedBatch] = []
        self.idle: frozenset[str] = frozenset()
        self.clip: float | None = None
        self._inputs: Mapping[str, Tensor] | None = None  # of the latest call, whose loss is awaited
        self._latest: dict[str, tuple[weakref.ref[Tensor], int, Tensor]] = {}
        self._nbytes = 0
        self._passes: list[_Pass] = []
        self._end: list[Callable[[], None]] = []
        if function:
            listener = Listener(self._hear, lambda: not is_own_run() and self._inputs is not None, guard)
            self._end.append(overheard.join([getattr(F, function)], listener))
        self._function = function
        events = (taps.module_call.before, self._called), (taps.clip_grads_with_norm.before, self._clipped)
        by_gradient = () if function else ((taps.backward.before, self._backward),)
        self._end.append(subscribe(self._safely, *events, *by_gradient))
        self._began(step)

    def close(self) -> None:
        """Record nothing more."""
        self._inputs = None
        while self._end:
            self._end.pop()()

    def drop(self) -> None:
        """Record nothing more, and keep nothing."""
        self.close()
        for kept in (self.batches, self._passes, self._latest):
            kept.clear()

    def _safely(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> None:
        self._guard.attempt(work, *arguments, **options)

    def _clipped(self, _parameters: Any, max_norm: Any, *_arguments: Any, **_options: Any) -> None:
        self.clip = float(max_norm)

    def _began(self, step: FirstStepPipeline) -> None:
        """Take the first batch, whose loss was computed before."""
        call, model = step.seen.call, step.model
        self.idle = frozenset(name for name, module in model.named_modules() if not module.training)
        if call is not None and self._function:
            self._take(dict(named_tensors(step.seen.called_with.arguments)), call.prediction, call.target)

    def _called(self, call: taps.ModuleCall) -> None:
        model = self._model()
        if model is None:
            self.close()
        elif torch.is_grad_enabled() and uncompiled(call.module) is model:
            self._inputs = dict(named_tensors((call.arguments, call.options)))
            if not self._function:
                call.on_return.append(lambda output: self._safely(self._returned, output))

    def _returned(self, output: Any) -> None:
        """Wait for the gradient of the prediction, where the loss is not one call."""
        prediction, inputs, self._inputs = prediction_in(output), self._inputs or {}, None
        if not isinstance(prediction, Tensor) or not prediction.requires_grad or not _are_dense(inputs.values()):
            self.close()
            return
        kept = {path: self._copied(path, tensor) for path, tensor in inputs.items()}
        seen = _Pass(kept, self._rate(), prediction.detach().clone())
        self._nbytes += 2 * prediction.nbytes

        def came(gradient: Tensor) -> None:
            if seen.gradient is None and self._end:
                seen.gradient = gradient.detach().clone()

        taps.on_gradient(prediction, came)
        self._passes.append(seen)
        if len(self._passes) >= MOST or self._nbytes > MOST_BYTES:
            self.close()

    def _backward(self, tensors: Any = None, *_arguments: Any, **_options: Any) -> None:
        if self._passes and isinstance(tensors, Tensor) and tensors.numel() == 1:
            self._passes[-1].loss = tensors.detach()

    def recovered(self) -> tuple[str, list[TrainedBatch]] | None:
        """Recover the targets of a loss that is written out.

        Returns:
            The function that computes the same, and the batches with their targets; None if no formula is known.
        """
        complete = [one for one in self._passes if one.gradient is not None and one.loss is not None]
        for formula, function in FUNCTIONS.items():
            found = [(one, batch) for one in complete if (batch := _recovered(one, formula)) is not None]
            if found and len(found) >= MOSTLY * len(complete):
                return function, [batch for _, batch in found]
        return None

    def _hear(self, _name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        given = dict(zip(("input", "target"), arguments, strict=False)) | options
        prediction, target = given.get("input"), given.get("target")
        if not isinstance(prediction, Tensor) or not isinstance(target, Tensor) or not prediction.requires_grad:
            return
        inputs, self._inputs = self._inputs or {}, None
        self._take(inputs, prediction, target)

    def _take(self, inputs: Mapping[str, Tensor], prediction: Tensor, target: Tensor) -> None:
        inputs = {**inputs, TARGET: target}
        if not _are_dense(inputs.values()):
            self.close()
            return
        kept = {path: self._copied(path, tensor) for path, tensor in inputs.items()}
        self.batches.append(TrainedBatch(kept, kept.pop(TARGET), tuple(prediction.shape), self._rate()))
        if len(self.batches) >= MOST or self._nbytes > MOST_BYTES:
            self.close()

    def _copied(self, path: str, tensor: Tensor) -> Tensor:
        """Copy a tensor; the same copy again, where all rows are trained on in each step."""
        latest, version = self._latest.get(path), tensor._version
        if latest is None or latest[0]() is not tensor or latest[1] != version:
            latest = self._latest[path] = weakref.ref(tensor), version, tensor.detach().clone()
            self._nbytes += tensor.nbytes
        return latest[2]

    def _rate(self) -> float | None:
        optimizer = self._optimizer()
        rates = [] if optimizer is None else [group.get("lr") for group in optimizer.param_groups]
        return max((float(rate) for rate in rates if rate is not None), default=None)


def _are_dense(there: Iterable[Tensor]) -> bool:
    return not any(t.layout is not torch.strided or t.is_nested or t.is_meta for t in there)


def _recovered(one: _Pass, formula: str) -> TrainedBatch | None:
    """Return a batch with the targets that a formula makes of its gradient; None if its loss is another."""
    output, gradient = to_array(one.output), None if one.gradient is None else to_array(one.gradient)
    if output is None or gradient is None or one.loss is None or output.ndim < 1:
        return None
    flat = output.astype(np.float64).reshape(len(output), -1)
    found = recovered(flat, gradient.astype(np.float64).reshape(flat.shape), output.ndim == 2).get(formula)
    loss = float(one.loss)
    if found is None or not abs(found.loss - loss) <= AGREES * abs(loss) + 1e-9:
        return None
    target = torch.from_numpy(found.targets.reshape(output.shape)).float()
    if formula == "softmax":
        target = target.argmax(1)
    return TrainedBatch(one.inputs, target, tuple(output.shape), one.rate)
