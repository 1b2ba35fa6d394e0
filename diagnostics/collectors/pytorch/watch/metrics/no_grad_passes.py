"""Counts the forward passes without gradients, as an evaluation makes them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.training import NoGradHistory

PASSES = 64  # in one mode whose inputs are compared with each other
NUMBERS = 16  # of an input, for that


class NoGradPasses(TrainingProbe):
    """Counts by mode and by round: the passes after one step are one round."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        modules = subject.model.modules()
        self._norms = [module for module in modules if isinstance(module, nn.modules.batchnorm._BatchNorm)]
        self._passes = self._in_training = self._rounds = self._examples = 0
        self._last_step = -1
        self._last_passes = 0
        self._last_training = False
        self._samples: dict[bool, list[tuple[int, Tensor]]] = {True: [], False: []}  # by mode

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Count a pass, before which there were so many steps."""
        self._passes += 1
        if self._last_step != step:
            self._rounds += 1
            self._last_step, self._last_passes = step, 0
        training = training and not self._recalibrates()
        if training != self._last_training:
            self._last_training, self._last_passes = training, 0
        self._last_passes += 1
        self._in_training += training
        given = [tensor for tensor in tensors((args, kwargs))[:1] if tensor.ndim]
        if given:
            if training:
                self._examples = max(self._examples, len(given[0]))
            plain = type(given[0]) is Tensor and given[0].layout is torch.strided and not given[0].is_nested
            if plain and given[0].numel() and len(self._samples[training]) < PASSES:
                self._samples[training].append((step, _sample(given[0])))

    def _recalibrates(self) -> bool:
        """Whether batch norm averages over all passes, as `torch.optim.swa_utils.update_bn` lets it."""
        return any(norm.momentum is None for norm in self._norms)

    def history(self) -> NoGradHistory:
        """Return the counts."""
        return NoGradHistory(
            self._passes,
            self._in_training,
            self._rounds,
            self._examples,
            self._last_step,
            self._last_passes,
            self._last_training,
            self._repeats(training=True),
            self._repeats(training=False),
        )

    def _repeats(self, training: bool) -> bool | None:
        samples = self._samples[training][:]  # another thread may be appending
        if not samples:
            return None
        host = to_host({place: sample for place, (_, sample) in enumerate(samples)})
        seen = [(step, host[place].tobytes()) for place, (step, _) in enumerate(samples)]
        return len(set(seen)) < len(seen)


def _sample(tensor: Tensor) -> Tensor:
    """Copy some numbers from the middle of a batch: the borders of images are alike."""
    middle = tensor.detach()
    while middle.ndim > 1:
        middle = middle[len(middle) // 2]
    return middle[:NUMBERS].clone()
