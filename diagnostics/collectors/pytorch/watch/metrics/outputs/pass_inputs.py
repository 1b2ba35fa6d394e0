"""Copies what a model got in a pass, as far as targets are compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.shared.arrays import LABEL_NAMES
from diagnostics.collectors.shared.learnability import FEATURES
from diagnostics.collectors.shared.target_rows import steps_of

ROWS = 32  # of a pass, kept for a fit
PASSED_LABELS = frozenset(LABEL_NAMES) - {"y"}  # which is as often a coordinate


def without_labels(inputs: Any) -> Any:
    """Leave out labels that are passed to the model by name, for the loss that it computes."""
    if isinstance(inputs, Mapping):
        return {name: without_labels(part) for name, part in inputs.items() if name not in PASSED_LABELS}
    return [without_labels(part) for part in inputs] if isinstance(inputs, list | tuple) else inputs


def is_plain(tensor: Any) -> bool:
    """Whether this is a dense tensor of PyTorch's own class: a subclass may not be readable, or not here."""
    return type(tensor) is Tensor and not tensor.is_nested and tensor.layout is torch.strided


def are_whole(inputs: Any, rows: int) -> bool:
    """Whether `_features` copies all that a model gets of a row: floats only, or one tensor of ids."""
    inputs = without_labels(inputs)
    there = tensors(inputs)
    alike = all(is_plain(t) and t.ndim and len(t) == rows for t in there)
    return alike and (len(there) == 1 or all(t.is_floating_point() for t in there)) and _are_tensors(inputs)


def _are_tensors(inputs: Any) -> bool:
    """Whether there is nothing else among the inputs, as the name or number of a task."""
    if isinstance(inputs, Mapping):
        inputs = list(inputs.values())
    if isinstance(inputs, list | tuple):
        return all(_are_tensors(part) for part in inputs)
    return inputs is None or isinstance(inputs, Tensor)


def features(inputs: Any, rows: int, chosen: slice) -> Tensor | None:
    """Copy some rows of the inputs: (k, features) of all that are floats, or (k, length) of token ids."""
    there = [t for t in tensors(without_labels(inputs)) if is_plain(t) and t.ndim and len(t) == rows]
    floats = [t for t in there if t.is_floating_point() and t.numel()]
    if floats:
        parts = []
        for tensor in floats:
            flat = tensor.detach()[chosen][:ROWS].reshape(len(tensor[chosen][:ROWS]), -1)
            parts.append(flat[:, :: max(1, -(-flat.shape[1] // FEATURES))].float())
        return torch.cat(parts, dim=1).clone()
    ids = next((t for t in there if t.dtype in (torch.int64, torch.int32) and t.ndim in (1, 2)), None)
    return None if ids is None else ids.detach()[chosen][:ROWS].reshape(len(ids[chosen][:ROWS]), -1).clone()


def last_step(inputs: Any, rows: int, kept: Tensor | None) -> int | None:
    """Return how many of the features kept are those of the last step; None where the inputs are no sequences."""
    there = [t for t in tensors(without_labels(inputs)) if is_plain(t) and t.ndim and len(t) == rows]
    floats = [t for t in there if t.is_floating_point()]
    if kept is None or all(tensor.ndim != 3 for tensor in floats):
        return None
    return steps_of(floats[0].shape[1:], kept.shape[1]) if len(floats) == 1 else 0
