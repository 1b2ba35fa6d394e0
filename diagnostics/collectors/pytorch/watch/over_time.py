"""Looks at a fixed batch, on a copy of the model, and at the layers, before chosen steps of the optimizers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.isolation.recording import unless_recorded
from diagnostics.collectors.pytorch.batch import loss_in, prediction_in
from diagnostics.collectors.pytorch.data import to_device
from diagnostics.collectors.pytorch.local_tensors import is_sharded, local
from diagnostics.collectors.pytorch.model import device_of, several_ranks, uncompiled
from diagnostics.collectors.pytorch.optimizer import unwrapped
from diagnostics.collectors.pytorch.state import random_states_kept, tensors_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import copied_tensors, tensors
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.collectors.pytorch.watch.replay.replay import twin
from diagnostics.collectors.pytorch.watch.replay.weight_snapshot import LIMIT, fits
from diagnostics.collectors.shared.over_time import (
    EXAMPLES,
    LAYERS,
    MAX_LOOKS,
    CannotDecode,
    decoded,
    histogram_of,
    is_look_step,
    prediction_texts,
    stride_for,
    target_texts,
)
from diagnostics.errors import InvalidInput, what
from diagnostics.facts.array import Array
from diagnostics.facts.over_time import FixedBatchFacts, Histogram, LayerHistograms, Look
from diagnostics.fixed_batch import FixedBatch
from diagnostics.text.join import count_of

BATCH, HISTOGRAMS = "fixed batch", "histograms"


class OverTime:
    """The looks of one watched run.

    Args:
        model: the user's.
        optimizers: of the loop.
        batch: to decode; None for none.
        by_layer: whether to take histograms.
        steps: to look at; None for those of `is_look_step`. After `MOST` looks no step is looked at.
        count: returns the steps made so far.
        faults: by part, filled as in `FaultGuard`.
        uncovered: the same.

    Attributes:
        on_look: called after each look, with what is new.

    Raises:
        InvalidInput: the batch is not one.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizers: list[Any],
        batch: FixedBatch | None,
        by_layer: bool,
        steps: Collection[int] | None,
        count: Callable[[], int],
        faults: dict[str, str],
        uncovered: dict[str, str],
    ) -> None:
        self._model: nn.Module | None = uncompiled(model)
        self._layers = Layers(self._model)
        self._steps, self._count = steps, count
        self._guard = FaultGuard(faults, uncovered)
        self._uncovered = uncovered
        self._device = device_of(self._model)
        self._batch = None if batch is None else _Held(batch)
        self._by_layer = by_layer
        self._looks: list[Look] = []
        self.histograms: list[LayerHistograms] = []
        self._latest = -1
        self.on_look: Callable[[Look | None, LayerHistograms | None], None] | None = None
        if self._batch is not None and (why := self._why_not()):
            uncovered[BATCH] = why
        inner = [unwrapped(optimizer) for optimizer in optimizers]
        held = [{number for number, _ in self._layers.held_by(optimizer)} for optimizer in inner]
        self._handles = [
            optimizer.register_step_pre_hook(unless_recorded(lambda *_, mine=mine: self._before_step(mine)))
            for optimizer, mine in zip(inner, held, strict=True)
        ]

    def fixed_batch(self) -> FixedBatchFacts | None:
        """Return the looks at the fixed batch; None without one."""
        if self._batch is None or not self._looks:
            return None
        return FixedBatchFacts(self._batch.size, *self._batch.texts, tuple(self._looks))

    def close(self) -> None:
        """Look at the end of the run, and remove the hooks."""
        if self._model is None:
            return
        if self._latest < self._count() and self._latest >= 0:  # a run without a step has nothing to show
            self._look(self._count(), set())
        while self._handles:
            self._handles.pop().remove()
        self._model = None

    def _before_step(self, held: set[int]) -> None:
        step = self._count()
        chosen = is_look_step(step) if self._steps is None else step in self._steps
        if chosen and step > self._latest and len(self._looks) < MAX_LOOKS and len(self.histograms) < MAX_LOOKS:
            self._look(step, held)

    def _look(self, step: int, held: set[int]) -> None:
        self._latest = step
        looks, measured = len(self._looks), len(self.histograms)
        if self._batch is not None and BATCH not in self._uncovered:
            self._guard.run(BATCH, self._decode, step)
        if self._by_layer:
            self._guard.run(HISTOGRAMS, self._measure, step, held)
        if self.on_look is not None:
            self.on_look(
                self._looks[-1] if len(self._looks) > looks else None,
                self.histograms[-1] if len(self.histograms) > measured else None,
            )

    def _measure(self, step: int, held: set[int]) -> None:
        with torch.no_grad(), own_run():
            self.histograms.append(histograms(self._layers, held, step))

    def _decode(self, step: int) -> None:
        assert self._model is not None
        assert self._batch is not None
        try:
            kept = tensors_kept(self._batch.loss_fn)
            with random_states_kept(), kept, own_run(), own_warnings_ignored(), torch.no_grad():
                self._looks.append(self._batch.look(twin(self._model, None).eval(), self._device, step))
        except CannotDecode as reason:
            self._uncovered[BATCH] = str(reason)

    def _why_not(self) -> str:
        if ranks := several_ranks():
            return f"{ranks} processes train together, and a forward pass in one of them could wait for the others"
        if any(map(is_sharded, self._layers.parameters.values())):
            return "the model is sharded, and a copy of it would be, too"
        if not fits(self._layers.parameters):
            return f"a copy of the model would need more than {LIMIT // 2**20} MiB"
        return ""


class _Held:
    """The user's batch: a copy, which what the loop does to the original does not change."""

    def __init__(self, batch: FixedBatch) -> None:
        self._batch, self.loss_fn = batch, batch.loss_fn
        self._inputs = copied_tensors(batch.inputs)
        self._targets = copied_tensors(batch.targets)
        found = [tensor for tensor in tensors(self._inputs) if tensor.ndim]
        if not found:
            raise InvalidInput(
                f"FixedBatch() was given {what(batch.inputs)} as inputs. It takes a tensor (examples, …), or a "
                "tuple or dict that holds some."
            )
        self.size = len(found[0])
        labels = self._inputs.get("labels") if isinstance(self._inputs, Mapping) else None
        self._answers: Any = self._targets if self._targets is not None else labels
        if isinstance(self._answers, Tensor) and self._answers.shape[:1] != (self.size,):
            raise InvalidInput(
                f"FixedBatch() was given inputs with {count_of(self.size, 'example')}, and targets of shape "
                f"{tuple(self._answers.shape)}. Both need the same first axis."
            )
        self._shown = found[0][:EXAMPLES].cpu()
        self._texts: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._decode_target = None if batch.decode_target is None else _given_tensors(batch.decode_target)

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The inputs and the targets of the examples shown.

        Raises:
            CannotDecode: a function of the user's raised.
        """
        if self._texts is None:
            batch, answers = self._batch, self._answers
            shown = self._shown if batch.decode is not None else _array(self._shown)
            inputs = tuple(decoded(batch.decode, row, "decode") for row in shown)
            of_targets: tuple[str, ...] = ()
            if isinstance(answers, Tensor):
                of_targets = target_texts(_array(answers[:EXAMPLES]), self._decode_target)
            self._texts = inputs, of_targets
        return self._texts

    def look(self, model: nn.Module, device: torch.device, step: int) -> Look:
        """Run a copy of the model.

        Raises:
            CannotDecode: the batch does not fit the model, or a function of the user's raised.
        """
        assert self.texts  # first, so that the user's functions fail before the pass
        inputs, targets = to_device(copied_tensors(self._inputs), device), to_device(self._targets, device)
        try:
            outputs = _called(model, inputs)
        except Exception as error:
            raise CannotDecode(f"the model raised {type(error).__name__} for it: {error}") from None
        prediction = prediction_in(outputs)
        if prediction is None or prediction.shape[:1] != (self.size,):
            shape = "no tensor" if prediction is None else f"a tensor of shape {tuple(prediction.shape)}"
            raise CannotDecode(f"the model returned {shape} for {count_of(self.size, 'example')}")
        answers = _array(self._answers[:EXAMPLES]) if isinstance(self._answers, Tensor) else None
        said, right = prediction_texts(_array(prediction[:EXAMPLES].float()), answers, self._decode_target)
        return Look(step, self._loss(outputs, targets), said, right)

    def _loss(self, outputs: Any, targets: Any) -> float | None:
        if self.loss_fn is None:
            loss = loss_in(outputs)
        else:
            try:
                loss = self.loss_fn(outputs, targets)
            except Exception as error:
                raise CannotDecode(f"loss_fn raised {type(error).__name__} for it: {error}") from None
        return float(loss.float().mean()) if isinstance(loss, Tensor) else None


def histograms(layers: Layers, held: set[int], step: int) -> LayerHistograms:
    """Measure the layers as they are now. Synchronises with the device.

    Args:
        layers: of the model.
        held: the numbers of the parameters whose gradients count: those of the optimizer that is about to step.
        step: steps made so far.
    """
    weights: dict[str, list[Tensor]] = {}
    gradients: dict[str, list[Tensor]] = {}
    for number, parameter in layers.everything():
        place = int(layers.of_parameter[number])
        if place >= LAYERS:
            continue
        name = layers.names[place]
        weights.setdefault(name, []).append(parameter)
        if number in held and parameter.grad is not None:
            gradients.setdefault(name, []).append(parameter.grad)
    return LayerHistograms(step, _by_layer(weights), _by_layer(gradients))


def _by_layer(values: dict[str, list[Tensor]]) -> dict[str, Histogram]:
    found = {name: _histogram(parts) for name, parts in values.items()}
    return {name: histogram for name, histogram in found.items() if histogram is not None}


def _histogram(parts: list[Tensor]) -> Histogram | None:
    dense = [local(part.detach()) for part in parts]
    flat = [part.reshape(-1) for part in dense if part.layout is torch.strided and part.is_floating_point()]
    size = sum(part.numel() for part in flat)
    if not size:
        return None
    stride = stride_for(size)
    return histogram_of([part[::stride].cpu().double().numpy() for part in flat], size)


def _called(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)


def _array(values: Tensor) -> Array:
    """Return the values in NumPy, which has no bfloat16."""
    values = values.detach().cpu()
    return np.asarray((values.float() if values.is_floating_point() else values).numpy())


def _given_tensors(decode: Callable[[Any], object]) -> Callable[[Any], object]:
    """Let a function of the user's have sequences as tensors."""
    return lambda value: decode(torch.from_numpy(value) if isinstance(value, np.ndarray) else value)
