"""Calls a model and a loss with a batch, as a training loop would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from diagnostics.collectors.pytorch.batch import split_batch
from diagnostics.collectors.pytorch.model import accepts, parameter_names
from diagnostics.collectors.shared.arrays import describe, fields, is_tensor, name_of
from diagnostics.collectors.shared.pipeline import StageFailed


def call_model(model: nn.Module, batch: Any, *, makes_loss: bool) -> Any:
    """Call a model with a batch, the labels included only if it makes its loss itself."""
    if isinstance(batch, Mapping):
        named = dict(batch) if makes_loss else split_batch(batch)[0]
        accepted = parameter_names(model)
        return model(**named) if not accepted or set(named) & set(accepted) else model(named)
    everything = tuple(fields(batch).values())
    if makes_loss and accepts(model, len(everything)):
        return model(*everything)
    return model(*split_batch(batch)[0].values())


def call_loss(loss_fn: Any, outputs: Any, batch: Any) -> Any:
    """Call ``loss_fn(prediction, target)`` with what a model returned for a batch.

    Raises:
        StageFailed: the model returned what the loss cannot take; says what there was instead.
    """
    prediction = outputs if is_tensor(outputs) else fields(outputs).get("logits", outputs)
    inputs, target = split_batch(batch)
    if target is None:  # an autoencoder: the input is its own target
        target = next(iter(inputs.values()))
    try:
        return loss_fn(prediction, target)
    except (TypeError, AttributeError) as error:
        if is_tensor(prediction):
            raise
        raise StageFailed(
            f"The model returned {describe(outputs)}, and {name_of(loss_fn)} cannot take that "
            f"({type(error).__name__}: {error}). Pass a loss_fn of (what the model returns, target), or let "
            "the model return a tensor."
        ) from error
