"""Recognises that a saved model cannot be read back: its format, its classes, or its end."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.frames import Crash
from diagnostics.collectors.crash.keras import LOSS_SHAPES, of_weights
from diagnostics.collectors.crash.messages.table import Family, Found
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.crash.setup import UnreadableCheckpoint

_UNREADABLE = Family("unreadable")
_TENSORFLOW = Family("tf-weights")
MOST_READ = 400  # characters of the line


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


_PART = re.compile(r"'(?P<name>[A-Za-z]\w{1,40})'")
_HOLDER = r"\w{0,60}(?:ckpt|checkpoint|chkpt|state_?dict|pretrain|snapshot|saved)\w{0,60}"


def lacking_part(crash: Crash) -> KnownFailure | None:
    """Recognise that a saved file has no entry of the name that a line asks of it.

    Returns:
        None if the key is not one that a line asks of something called a checkpoint: a weight's name has dots.
    """
    facts = crash.facts
    part = _PART.fullmatch(facts.message.strip()) if facts.exception == "KeyError" and facts.frames else None
    if part is None:
        return None
    asked = re.search(
        rf"(?<!\w)(?P<holder>(?:\w{{1,60}}\.)?{_HOLDER})\[\s*['\"]{part['name']}['\"]\s*\]",
        (facts.frames[-1].code or "")[:MOST_READ],
        re.IGNORECASE,
    )
    if asked is None:
        return None
    holder, name = asked["holder"], part["name"]
    return KnownFailure(
        "unreadable-checkpoint",
        f"The file that {holder} was read from has no part {name!r}: it holds the weights alone, as published "
        "files and those of the best epoch often do, or was saved under other names.",
        (
            f"print({holder}.keys())",
            f"to resume a run: the file that the run itself wrote with {name!r} in it, often last.pth or a file "
            "of its own",
            f"if {name!r} in {holder}: before the line, where only the weights are needed",
        ),
        facts.message,
    )


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
    shapes = (_shape(saved), _shape(built))
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


def _shape(written: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", written))
