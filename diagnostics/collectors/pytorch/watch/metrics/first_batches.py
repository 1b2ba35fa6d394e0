"""Keeps a few rows of the first batch, in training and in evaluation, for the report to show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.pytorch.discover.batch_source import latest_batch
from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.arrays import LABEL_NAMES
from diagnostics.collectors.shared.batch_view import PARTS, ROWS, batch_view
from diagnostics.facts.batch_view import BatchView

LARGEST = 4 * 2**20  # bytes of an input; of larger rows there are fewer


class FirstBatches(TrainingProbe):
    """Copies rows of two passes, 4 MiB of an input at most; they stay on the device until they are read."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._kept: dict[str, _Rows] = {}
        self._step = -1

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Take the first pass of training."""
        if self.subject.shows_batch and "training" not in self._kept:
            self._step = step
            self._kept["training"] = _Rows("training", args, kwargs, latest_batch.labels_beside((args, kwargs)))

    def on_labels(self, step: int, labels: Any) -> None:
        """Take the labels that the loop passes for this step."""
        if step == self._step and isinstance(labels, Tensor):
            self._kept["training"].add_labels(labels)

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Take the first pass without gradients after a step: one before the first is often a trial."""
        if self.subject.shows_batch and step and "evaluation" not in self._kept:
            labels = latest_batch.labels_beside((args, kwargs))
            self._kept["evaluation"] = _Rows("evaluation", args, kwargs, labels)

    def facts(self) -> Iterator[BatchView | None]:
        """Yield what to show."""
        for rows in self._kept.values():
            yield rows.view()


class _Rows:
    """Rows of the inputs of a pass, and their labels if they are known."""

    def __init__(self, title: str, args: Any, kwargs: Any, labels: Tensor | None) -> None:
        self._title = title
        self._targets: dict[str, Tensor] = {}
        self._inputs: dict[str, Tensor] = {}
        self._size: int | None = None
        self._view: BatchView | None = None
        for name, tensor in (*named_tensors(args), *named_tensors(kwargs)):
            if not _is_shown(tensor):
                continue
            self._size = len(tensor) if self._size is None else self._size
            into = self._targets if name.rpartition(".")[2] in LABEL_NAMES else self._inputs
            if len(into) < PARTS and len(tensor) == self._size:
                into[name] = _cut(tensor)
        if labels is not None and not self._targets:
            self.add_labels(labels)

    def add_labels(self, labels: Tensor) -> None:
        """Take the labels of the rows."""
        if not self._targets and self._view is None and _is_shown(labels) and len(labels) == self._size:
            self._targets["target"] = _cut(labels)

    def view(self) -> BatchView | None:
        """Return what to show, and let go of the tensors; None if the pass had no tensor."""
        if self._view is None and self._inputs:
            self._view = batch_view(self._title, self._inputs, self._targets, size=self._size)
            self._inputs, self._targets = {}, {}
        return self._view


def _is_shown(tensor: Tensor) -> bool:
    """Whether rows of it can be read: a subclass may talk to other ranks when it is cut."""
    plain = type(tensor) in (Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    return bool(plain and not tensor.is_nested and not tensor.is_meta and tensor.ndim and tensor.numel())


def _cut(tensor: Tensor) -> Tensor:
    rows = LARGEST * len(tensor) // max(tensor.nbytes, 1)
    return tensor.detach()[: max(1, min(ROWS, rows))].clone()
