"""Measures what each answer for the examined batch depends on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from torch.utils.data import DataLoader, default_collate

from diagnostics.collectors.pytorch.batch import split_batch, with_inputs
from diagnostics.collectors.pytorch.data import is_shuffled
from diagnostics.collectors.pytorch.dependence.measure import PARTS, measure
from diagnostics.collectors.pytorch.dependence.subject import Subject, all_counted
from diagnostics.collectors.pytorch.model import device_of, parameter_names
from diagnostics.collectors.shared.arrays import flat
from diagnostics.facts.dependence import DependenceFacts

SECONDS_ASKING = 2.0  # about parts of a batch


def batch_dependence(
    model: nn.Module,
    batch: Any,
    predict: Callable[[nn.Module, Any], Any],
    *,
    loader: Any,
    ignore_index: int,
    predicts_tokens: bool,
) -> DependenceFacts:
    """Ask a copy again about parts of the batch; it is used up.

    Args:
        model: the copy.
        batch: that it was run on.
        predict: returns the outputs of a model for a batch.
        loader: where the batch came from.
        ignore_index: the label that the loss leaves out.
        predicts_tokens: whether the loss is a cross entropy and nothing else.
    """
    parts, target = split_batch(batch)
    named = flat(parts)
    inputs = {name: value for name, value in named.items() if isinstance(value, Tensor)}
    if device_of(model).type != "cpu" and not all_counted(inputs):
        return DependenceFacts(why_not=dict.fromkeys(PARTS, "an index out of range can end a GPU"))
    named_apart = not isinstance(batch, Mapping) or bool(set(named) & set(parameter_names(model)))
    is_loader = isinstance(loader, DataLoader)
    return measure(
        Subject(
            model=model,
            call=lambda copied, given: predict(copied, with_inputs(batch, given)),
            inputs=inputs,
            tested=frozenset(inputs) if named_apart else frozenset(),
            target=target if isinstance(target, Tensor) else None,
            ignore_index=ignore_index,
            batch_first=is_loader and loader.collate_fn is default_collate,
            shuffled=is_shuffled(loader) if is_loader else None,
            predicts_tokens=predicts_tokens,
            deadline=time.monotonic() + SECONDS_ASKING,
        )
    )
