"""Keeps a part of some inputs, in training and in evaluation, to see whether both were prepared alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel, last_rows
from diagnostics.collectors.shared.input_sample import (
    Collected,
    collected,
    is_measured,
    part_of,
    samples,
    traits_of,
)
from diagnostics.facts.inputs import DrawnInputs, InputFacts

TRAINING = 16  # batches looked at
EVALUATION = 64  # passes kept; with a batch size of 1, they hold no more rows than a batch
FIRST_PASSES = 16  # over a dataset, all looked at
APART = 10  # steps between two evaluations that are no part of the steps themselves
INPUTS = 8  # of a pass


class InputSamples(TrainingProbe):
    """Copies parts of inputs; they stay on the device until they are read: 8 MiB at most for each input."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._training: dict[str, Collected] = {}
        self._evaluation: dict[str, Collected] = {}
        self._seen = self._rounds = self._passes = self._rows = 0
        self._round, self._is_apart = -1, False

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Look at a training pass."""
        if self._seen < TRAINING:
            self._seen += 1
            _take(self._training, args, kwargs)

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Look at a pass without gradients after `step` steps: not at those before the first, often a trial."""
        if not step:
            return
        if self._round != step:
            self._is_apart = step - self._round >= APART
            self._round, self._passes = step, 0
            self._rounds += 1
        rows = next((len(tensor) for _, tensor in _named(args, kwargs) if tensor.ndim), 0)
        if rows > self._rows:  # the last batch of a dataset is often smaller, so another one begins
            self._passes = 0
        self._rows = rows
        self._passes += 1
        if not self._is_apart and not _is_chosen(self._rounds):
            return
        if self._passes <= FIRST_PASSES or _is_chosen(self._passes):
            _take(self._evaluation, args, kwargs)
            for one in self._evaluation.values():
                del one.parts[EVALUATION // 4 : -EVALUATION * 3 // 4]  # the first and the last are kept

    def facts(self) -> Iterator[InputFacts | DrawnInputs | None]:
        """Yield the inputs of both sides, and those of training."""
        yield self.of_both_sides()
        if training := samples(_on_host(self._training)):
            yield DrawnInputs(training)

    def of_both_sides(self) -> InputFacts | None:
        """Return what is known of training and of evaluation; None if there was none."""
        if not self._evaluation:
            return None
        training, evaluation = samples(_on_host(self._training)), samples(_on_host(self._evaluation))
        both = training.keys() & evaluation.keys()
        if not both:
            return None
        return InputFacts(
            {name: training[name] for name in both},
            {name: evaluation[name] for name in both},
            self._rounds,
            last_rows(self.subject.model),
        )


def _is_chosen(number: int) -> bool:
    """Whether to look at the so-manieth of a series: 1, 2, 3, 4, 6, 8, 12, 16, 24, …"""
    return number <= 4 or number & (number - 1) == 0 or (not number % 3 and (number // 3) & (number // 3 - 1) == 0)


def _named(args: Any, kwargs: Any) -> tuple[tuple[str, Tensor], ...]:
    return (*named_tensors(args), *named_tensors(kwargs))


def _take(kind: dict[str, Collected], args: Any, kwargs: Any) -> None:
    for name, tensor in _named(args, kwargs):
        if not _is_comparable(tensor) or not is_measured(name):
            continue
        if name not in kind:
            if len(kind) >= INPUTS:
                return
            kind[name] = collected(tuple(tensor.shape), not tensor.is_floating_point())
        one = kind[name]
        if collected(tuple(tensor.shape), one.integers).axis == one.axis:
            values = tensor.detach()
            one.parts.append(part_of(values).to(torch.float32, copy=True))
            one.traits.append(traits_of(values).to(torch.float32, copy=True))


def _on_host(kind: dict[str, Collected]) -> dict[str, Collected]:
    return {
        name: replace(one, parts=_arrays(one.parts), traits=_arrays(one.traits))
        for name, one in list(kind.items())
    }


def _arrays(tensors: list[Tensor]) -> list[Any]:
    return list(to_host(dict(enumerate(tensors))).values())


def _is_comparable(tensor: Tensor) -> bool:
    """Whether these are measurements, and not ids: floats, or the bytes of an image."""
    if type(tensor) is not Tensor or not (tensor.is_floating_point() or tensor.dtype is torch.uint8):
        return False  # a subclass may talk to other ranks when it is cut
    return bool(tensor.ndim and tensor.numel() and tensor.layout is torch.strided and not tensor.is_nested)
