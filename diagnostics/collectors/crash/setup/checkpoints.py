"""Recognises that a saved model cannot be read back: its format, its classes, or its end."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.frames import Crash
from diagnostics.collectors.crash.messages.table import Family
from diagnostics.facts.crash.setup import UnreadableCheckpoint
from diagnostics.facts.crash.shapes import Shape, WeightsMisfit

_UNREADABLE = Family("unreadable")
_TENSORFLOW = Family("tf-weights")


def unreadable(crash: Crash) -> UnreadableCheckpoint | None:
    """Recognise a file that could not be read."""
    message = crash.facts.message
    if found := _UNREADABLE.search(message):
        return UnreadableCheckpoint(found.kind, found.get("what"))
    ended = crash.facts.exception == "EOFError" and "Ran out of input" in message
    functions = {frame.function for frame in crash.facts.frames}
    if ended and functions & {"_legacy_load", "torch_load"}:
        return UnreadableCheckpoint("cut off")
    lacking = re.search(r"No module named '(\w[\w.]*)'", message)
    unpickles = any(frame.file.endswith("torch/serialization.py") for frame in crash.facts.frames)
    if lacking is not None and unpickles:
        return UnreadableCheckpoint("missing module", lacking[1])
    return None


def weights(crash: Crash) -> WeightsMisfit | None:
    """Read the sizes that differ from TensorFlow's message, which does not name the weight."""
    found = _TENSORFLOW.search(crash.facts.message)
    if found is None:
        return None
    return WeightsMisfit("model", {"a weight": (_shape(found["saved"]), _shape(found["built"]))})


def _shape(written: str) -> Shape:
    return tuple(int(size) for size in re.findall(r"\d+", written))
