"""Keeps a few images with the masks, boxes or points that a loss compares the predictions with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.discover.loss_calls import RecordedLoss, hear_losses
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.flipped_targets import ImageTargets
from diagnostics.facts.data import OrientedPairs

STEPS = 64  # in which losses are heard
NODES = 64  # of the graph, closest to the loss, in which a flip is looked for


class FlippedImageTargets(TrainingProbe):
    """Hears the losses of sampled steps until there are enough rows; copies stay on the device."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._kept = ImageTargets()
        self._steps = self._passes = 0
        self._inputs: list[Tensor] = []
        self._end: list[Callable[[], None]] = []

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Hear the losses of this step, if the model gets an image."""
        self._leave()
        self._passes = 0
        if self.subject.compiled or not self._kept.wants():  # a compiled loss would be compiled again
            return
        self._inputs = [one.detach() for one in tensors((args, kwargs)) if _is_image(one)]
        if self._inputs and self._steps < STEPS:
            self._steps += 1
            self._end.append(hear_losses(self._hear, self._is_mine, self.subject.guard))

    def on_pass_end(self, step: int, output: Any, inputs: Any) -> None:
        """Hear no losses of a second pass, which may be of other images."""
        self._passes += 1
        if self._passes > 1:
            self._leave()

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Hear no more losses of this step."""
        self._leave()

    def on_training_again(self) -> None:
        """Hear no more losses of this step."""
        self._leave()

    def on_step(self, step: int, number: int) -> None:
        """Hear no more losses of this step."""
        self._leave()

    def facts(self) -> Iterator[OrientedPairs | None]:
        """Yield how the targets fit."""
        yield self._kept.facts()

    def _leave(self) -> None:
        self._inputs = []
        while self._end:
            self._end.pop()()

    def _is_mine(self) -> bool:
        return torch.is_grad_enabled() and self.subject.is_own() and not is_own_run()

    def _hear(self, call: RecordedLoss) -> None:
        if call.target.layout is not torch.strided or _is_flipped(call.source()):
            return
        if self._kept.take(self._inputs, [call.target]):
            self._leave()  # another loss of the step may be of mirrored copies


def _is_flipped(prediction: Tensor | None) -> bool:
    """Whether the last operations flip the prediction, as to undo a flip of the image."""
    nodes = [None if prediction is None else prediction.grad_fn]
    for node in nodes:  # which grows
        if "Flip" in type(node).__name__ or "Rot90" in type(node).__name__:
            return True
        if len(nodes) < NODES:
            nodes += [other for other, _ in getattr(node, "next_functions", ())]
    return False


def _is_image(tensor: Tensor) -> bool:
    """Whether it may be images; integers may be the labels, passed for the loss that a model computes itself."""
    plain = type(tensor) is Tensor and tensor.layout is torch.strided
    return plain and tensor.ndim in (3, 4) and (tensor.is_floating_point() or tensor.dtype is torch.uint8)
