"""Recognises weights in a file that have other shapes than those of a model in Keras or TensorFlow."""

from __future__ import annotations

from diagnostics.collectors.crash.frames import Crash
from diagnostics.collectors.crash.keras import LOSS_SHAPES, of_weights
from diagnostics.collectors.crash.messages.table import Family, Found, sizes
from diagnostics.facts.crash.known import KnownFailure

_TENSORFLOW = Family("tf-weights")


def weights(crash: Crash) -> KnownFailure | None:
    """Read the sizes that differ from a message of Keras or TensorFlow, which does not name the weight."""
    message = crash.facts.message
    found = LOSS_SHAPES.search(message)
    if found is not None and found.kind == "loss or weights" and of_weights(crash, found):
        return _misfit(found, found["prediction"], found["target"])
    found = _TENSORFLOW.search(message)
    return None if found is None else _misfit(found, found["saved"], found["built"])


def _misfit(found: Found, saved: str, built: str) -> KnownFailure:
    """Kernels of TensorFlow have the outputs last: a head for other classes differs there alone."""
    shapes = (sizes(saved), sizes(built))
    head = " Only the last axis differs: a head for other classes." if shapes[0][:-1] == shapes[1][:-1] else ""
    return KnownFailure(
        "shape-mismatch",
        f"A weight has the shape {shapes[0]} in the checkpoint and {shapes[1]} in the model.{head}",
        (
            "model.load_weights(path, skip_mismatch=True) or include_top=False, and train the other layers again",
            "build the model with the sizes in the checkpoint, and replace the last layer after loading",
        ),
        " ".join(found.text.split()),
    )
