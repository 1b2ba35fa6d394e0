"""The batch that `watch` and the callbacks decode again and again while a model trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FixedBatch:
    """A batch whose predictions are shown over time, beside its loss.

    batch = diagnostics.FixedBatch(inputs, targets, loss_fn, decode=tokenizer.decode)
    diagnostics.watch(model, optimizer, fixed_batch=batch)

    The types below are PyTorch's. For Keras inputs and targets are arrays as `fit` takes them, the functions get
    arrays, and `loss_fn` is called as ``loss_fn(targets, outputs)``; None stands for the loss of `compile`.

    Attributes:
        inputs: what the model is called with: a tensor (examples, …), a tuple of them, or a dict for
            ``model(**inputs)``. Tensors on another device than the model's are moved.
        targets: a tensor (examples, …); None if there are none, or if the inputs hold the labels.
        loss_fn: computes the loss, a tensor (), as ``loss_fn(outputs, targets)``; None for the loss that the
            model returns, if it returns one.
        decode: makes text of one example of the first input, a tensor without its first axis, on the CPU; None to
            show the numbers.
        decode_target: makes text of a target, and of what the model predicts in its place: of a class, an int; of
            a sequence of them, a tensor (positions,). None to show the numbers.
    """

    inputs: Any
    targets: Any = None
    loss_fn: Callable[[Any, Any], Any] | None = None
    decode: Callable[[Any], object] | None = None
    decode_target: Callable[[Any], object] | None = None
