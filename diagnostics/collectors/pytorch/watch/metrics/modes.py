"""Records in which mode layers run, in training and in evaluation, and the running statistics of batch norm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from diagnostics.collectors.pytorch.discover.batch_source import latest_batch
from diagnostics.collectors.pytorch.model import has_modes
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.history import History
from diagnostics.facts.layers import BatchNormFacts, TrainModeFacts
from diagnostics.facts.training import NoGradHistory

PASSES = 64  # in one mode whose inputs are compared with each other
NUMBERS = 16  # of an input, for that


class TrainModes(TrainingProbe):
    """Records the mode of layers that behave differently in training, in a few steps."""

    part = "train mode"

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        layers = [(name, module) for name, module in subject.model.named_modules() if has_modes(module)]
        self._layers = [(name, module) for name, module in layers if _learns(subject.model, name, module)]
        self._rows = History(
            [("steps", np.int64), ("in_training", np.int64), ("sources", np.int64)], recent=64, older=64
        )

    def on_backward(self, step: int) -> None:
        """Count the layers in training mode, during a backward pass: an evaluation has none.

        Of several passes in a step the one with the most counts: gradients of the inputs, as adversarial examples
        are made from, are taken in evaluation mode.
        """
        if not self._layers:
            return
        count = sum([module.training for _, module in self._layers])
        if self._rows.total and int(self._rows.last()["steps"][0]) == step:
            self._rows.last()["in_training"] = max(count, int(self._rows.last()["in_training"][0]))
        else:
            self._rows.append((step, count, latest_batch.source))

    def facts(self) -> Iterator[TrainModeFacts]:
        """Yield the facts, unless no step was recorded."""
        if self._layers and not self._rows.total:
            return
        yield TrainModeFacts(
            layers=tuple(name for name, _ in self._layers),
            keeps_statistics=tuple(
                isinstance(module, nn.modules.batchnorm._BatchNorm) for _, module in self._layers
            ),
            **self._rows.arrays(),
        )


class RunningStatistics(TrainingProbe):
    """Reads what evaluation uses in place of the batch's own statistics, when it is asked."""

    part = "running statistics"

    def facts(self) -> Iterator[BatchNormFacts]:
        """Describe the layers that have counted a batch, if there are any."""
        found: list[tuple[str, float, bool]] = []
        for name, module in self.subject.model.named_modules():
            if not isinstance(module, _BatchNorm):
                continue
            mean, variance, counted = module.running_mean, module.running_var, module.num_batches_tracked
            if mean is None or variance is None or counted is None or not int(counted):
                continue
            momentum = math.nan if module.momentum is None else float(module.momentum)
            found.append((name, momentum, bool((mean == 0).all()) and bool((variance == 1).all())))
        if found:
            names, momentums, untouched = zip(*found, strict=True)
            yield BatchNormFacts(names, np.array(momentums, np.float64), np.array(untouched, bool))


class NoGradPasses(TrainingProbe):
    """Counts passes without gradients by mode and by round: the passes after one step are one round."""

    part = "no grad passes"

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        modules = subject.model.modules()
        self._norms = [module for module in modules if isinstance(module, nn.modules.batchnorm._BatchNorm)]
        self._passes = self._in_training = self._rounds = self._examples = 0
        self._last_step = -1
        self._last_passes = 0
        self._last_training = False
        self._samples: dict[bool, list[tuple[int, Tensor]]] = {True: [], False: []}  # by mode
        self._with_gradients: list[tuple[int, Tensor]] = []

    def on_early_pass(self, step: int, args: Any, kwargs: Any) -> None:
        """Keep a sample of the input of a pass with gradients."""
        if (sample := _sample_of(args, kwargs)) is not None:
            self._with_gradients.append((step, sample))

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
        if given and training:
            self._examples = max(self._examples, len(given[0]))
        if len(self._samples[training]) < PASSES and (sample := _sample_of(args, kwargs)) is not None:
            self._samples[training].append((step, sample))

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
            *self._same_inputs(),
        )

    def _same_inputs(self) -> tuple[int, int]:
        """Count the steps with passes of both kinds, and those in which two of them had the same input."""
        both = [self._with_gradients[:], [sample for mode in (True, False) for sample in self._samples[mode]]]
        trained, plain = (set(_hosted(samples)) if samples else set() for samples in both)
        steps = {step for step, _ in trained} & {step for step, _ in plain}
        return len(steps), len({step for step, _ in trained & plain})

    def _repeats(self, training: bool) -> bool | None:
        samples = self._samples[training][:]  # another thread may be appending
        if not samples:
            return None
        return len(set(_hosted(samples))) < len(samples)


def _hosted(samples: list[tuple[int, Tensor]]) -> list[tuple[int, bytes]]:
    host = to_host({place: sample for place, (_, sample) in enumerate(samples)})
    return [(step, host[place].tobytes()) for place, (step, _) in enumerate(samples)]


def _sample_of(args: Any, kwargs: Any) -> Tensor | None:
    """Copy some numbers from the middle of the first input: the borders of images are alike."""
    tensor = next(iter(tensors((args, kwargs))), None)
    if tensor is None or not tensor.ndim or type(tensor) is not Tensor or tensor.layout is not torch.strided:
        return None
    if tensor.is_nested or not tensor.numel():
        return None
    middle = tensor.detach()
    while middle.ndim > 1:
        middle = middle[len(middle) // 2]
    return middle[:NUMBERS].clone()


def _learns(model: nn.Module, name: str, module: nn.Module) -> bool:
    """Whether a layer belongs to a part that is trained: by its own parameters, or those around it."""
    own = list(module.parameters())
    around = own or model.get_submodule(name.rpartition(".")[0]).parameters()
    return any(parameter.requires_grad for parameter in around)
