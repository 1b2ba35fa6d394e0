"""Keeps how Keras pairs a model's losses with its outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras


@contextmanager
def own_loss(model: keras.Model) -> Iterator[None]:
    """Let the model pair its losses with its outputs again, and forget that on leaving.

    The pairing is made once, for the first batch; another structure of batches would be refused afterwards.
    """
    pairing = getattr(model, "_compile_loss", None)
    if pairing is None:
        yield
        return
    fresh = type(pairing)(pairing._user_loss, pairing._user_loss_weights, pairing.reduction, pairing.output_names)
    vars(model)["_compile_loss"] = fresh  # past Keras' tracking of attributes
    try:
        yield
    finally:
        vars(model)["_compile_loss"] = pairing
