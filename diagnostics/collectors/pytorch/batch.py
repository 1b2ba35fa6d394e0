"""Splits batches and model outputs of any structure, and calls a model and a loss with a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from diagnostics.collectors.pytorch.model import accepts, parameter_names
from diagnostics.collectors.shared.arrays import (
    describe,
    fields,
    flat,
    is_tensor,
    name_of,
    target_name,
    to_array,
    with_parts,
)
from diagnostics.collectors.shared.pipeline import StageFailed


def describe_source(data: Any) -> str:
    """Name a source of batches."""
    article = "an" if type(data).__name__[0] in "AEIOUaeiou" else "a"
    return f"{article} {type(data).__name__}"


def split_batch(batch: Any) -> tuple[dict[str, Any], Any]:
    """Part a batch into named inputs and target (None if it has none)."""
    name = target_name(batch)
    inputs = fields(batch)
    return inputs, None if name is None else inputs.pop(name)


def is_single(target: Any) -> bool:
    """Whether this is the target of one example that no axis counts, as a loader with batch_size=None may give."""
    return not getattr(target, "shape", (1,))


def some_rows(batch: Any, rows: slice | Tensor, size: int) -> Any:
    """Cut some of the `size` examples out of a batch; what has another first axis stays whole."""
    if is_tensor(batch):
        return batch[rows] if batch.ndim and batch.shape[0] == size else batch
    return with_parts(batch, lambda part: some_rows(part, rows, size))


def with_inputs(batch: Any, given: Mapping[str, Tensor], path: str = "") -> Any:
    """Replace the inputs in a batch by tensors with the same names."""
    if isinstance(batch, Tensor):
        return given.get(path or "0", batch)
    if isinstance(batch, Mapping):
        parts = {
            key: with_inputs(part, given, f"{path}.{key}" if path else str(key)) for key, part in batch.items()
        }
        return parts
    if isinstance(batch, list | tuple):
        found = [with_inputs(part, given, f"{path}.{n}" if path else str(n)) for n, part in enumerate(batch)]
        return type(batch)(*found) if hasattr(batch, "_fields") else type(batch)(found)
    return batch


def distinct_rows(inputs: Mapping[str, Any]) -> int:
    """Count the examples of a batch that differ from each other in some input."""
    arrays = [array for value in flat(inputs).values() if (array := to_array(value)) is not None and array.ndim]
    if not arrays:
        return 0
    size = arrays[0].shape[0]
    same = [np.ascontiguousarray(array) for array in arrays if array.shape[0] == size]
    return len({b"".join(array[row].tobytes() for array in same) for row in range(size)})


def prediction_in(outputs: Any) -> Tensor | None:
    """Pick the prediction out of what a model returned: logits if so named, else the first float tensor."""
    named = fields(outputs)
    for name in ("logits", "prediction", "predictions", "output"):
        if isinstance(named.get(name), Tensor):
            return named[name]
    tensors = [value for name, value in named.items() if isinstance(value, Tensor) and name != "loss"]
    floats = [value for value in tensors if value.is_floating_point() and value.ndim]
    return floats[0] if floats else None


def certain_prediction(outputs: Any) -> Any:
    """Return a model's only output, its logits by name, or the only numbers of a tuple, as in (logits, loss)."""
    if isinstance(outputs, Tensor):
        return outputs
    if isinstance(outputs, Mapping):
        return outputs.get("logits")
    if type(outputs) in (tuple, list):
        several = [one for one in outputs if isinstance(one, Tensor) and one.ndim and one.is_floating_point()]
        return several[0] if len(several) == 1 else None
    return getattr(outputs, "logits", None)


def prediction_if_any(predict: Callable[[nn.Module, Any], Any], model: nn.Module, batch: Any) -> Tensor | None:
    """Return the prediction, or None for a model that cannot run without its labels."""
    try:
        return prediction_in(predict(model, batch))
    except Exception:  # the next call, with the loss, will say so in full
        return None


def loss_in(outputs: Any) -> Any:
    """Pick the loss out of what a model returned that computes it itself."""
    named = fields(outputs)
    if "loss" in named:
        return named["loss"]
    return next((v for v in named.values() if isinstance(v, Tensor) and v.ndim == 0), None)


def checked_loss(loss: Any, outputs: Any, loss_fn: Any) -> Tensor:
    """Return the loss if it is one number in a tensor.

    Raises:
        StageFailed: it is not; says what there was instead.
    """
    if loss is None and loss_fn is None:
        raise StageFailed(
            f"The model returned {describe(outputs)}, and no loss_fn was given: there is no loss to train on. "
            "Pass examine(model, loader, loss_fn), or let the model return its loss."
        )
    if not isinstance(loss, Tensor):
        number = (
            " Leave out .item(), float() or .numpy()." if isinstance(loss, float | np.number | np.ndarray) else ""
        )
        raise StageFailed(f"The loss is {describe(loss)}; training needs a tensor holding one number.{number}")
    if loss.numel() != 1:
        raise StageFailed(
            f"The loss is {describe(loss)}; training needs one number. Take its mean, or leave out "
            'reduction="none".'
        )
    return loss.reshape(())


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
