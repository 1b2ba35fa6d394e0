"""Recognises that a saved model cannot be read back: its format, its classes, or its end."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash.setup import UnreadableCheckpoint
from diagnostics.facts.crash.shapes import Shape, WeightsMisfit

_KINDS = (
    ("weights only", r"Weights only load failed|WeightsUnpickler error"),
    ("newer keras", r"parent module (?P<what>keras\.src\.[\w.]+) cannot be imported"),
    ("newer keras", r"Unrecognized keyword arguments: (?:dict_keys\()?\[?'(?P<what>batch_shape)'"),
    ("custom class", r"Could not locate (?:class|function) '(?P<what>\w+)'\. Make sure custom"),
    (
        "custom class",
        r"Unknown (?:layer|loss function|metric function|activation function|object): '?(?P<what>\w+)",
    ),
    ("custom class", r"<class '(?P<what>[\w.]+)'> could not be deserialized properly"),
    ("not a checkpoint", r"invalid load key, (?P<what>'[^']{1,8}')"),
    ("not a checkpoint", r"Error while deserializing header: (?P<what>\w*(?:HeaderTooLarge|InvalidHeader\w*))"),
    ("not a checkpoint", r"Unable to (?:synchronously )?open file \((?P<what>file signature not found)\)"),
    ("cut off", r"PytorchStreamReader failed (?P<what>reading zip archive|finding central directory)[^\n]*"),
    (
        "cut off",
        r"unexpected EOF, expected \d+ more bytes|Error while deserializing header: (?P<what>\w*Incomplete\w*)",
    ),
    ("cut off", r"Unable to (?:synchronously )?open file \((?P<what>truncated file)"),
    ("cut off", r"storage has wrong (?:byte )?size: expected -?\d+ got -?\d+"),
)


def unreadable(crash: Crash) -> UnreadableCheckpoint | None:
    """Recognise a file that could not be read."""
    message = crash.facts.message
    for kind, pattern in _KINDS:
        if found := re.search(pattern, message):
            return UnreadableCheckpoint(kind, found.groupdict().get("what"))  # type: ignore[arg-type]
    ended = crash.facts.exception == "EOFError" and "Ran out of input" in message
    functions = {frame.function for frame in crash.facts.frames}
    if ended and functions & {"_legacy_load", "torch_load"}:
        return UnreadableCheckpoint("cut off")
    lacking = re.search(r"No module named '(\w[\w.]*)'", message)
    unpickles = any(frame.file.endswith("torch/serialization.py") for frame in crash.facts.frames)
    if lacking is not None and unpickles:
        return UnreadableCheckpoint("missing module", lacking[1])
    return None


_SIZE = r"torch\.Size\(\[([\d, ]*)\]\)"
_SIZE_MISMATCH = re.compile(
    rf"size mismatch for ([\w.]+): copying a param with shape {_SIZE} from checkpoint, the shape in current "
    rf"model is "
    rf"{_SIZE}"
)
_OLD_SIZE_MISMATCH = re.compile(  # until 0.4
    rf"While copying the parameter named \"?([\w.]+)\"?, whose dimensions in the model are {_SIZE} and whose "
    rf"dimensions in the checkpoint are {_SIZE}"
)
_TENSORFLOW = re.compile(
    r"Tensor's shape \((?P<built>[\d, ]+)\) is not compatible with supplied shape [(\[](?P<saved>[\d, ]+)[)\]]"
)


def weights(crash: Crash) -> WeightsMisfit | None:
    """Read the sizes that differ where the sentence with the model's name is missing, or of another age."""
    message = crash.facts.message
    new = {name: (_shape(saved), _shape(built)) for name, saved, built in _SIZE_MISMATCH.findall(message)}
    old = {name: (_shape(saved), _shape(built)) for name, built, saved in _OLD_SIZE_MISMATCH.findall(message)}
    if new or old:
        named = re.search(r"loading state_dict for (\w+)", message)
        return WeightsMisfit("model" if named is None else named[1], new or old)
    if found := _TENSORFLOW.search(message):
        return WeightsMisfit("model", {"a weight": (_shape(found["saved"]), _shape(found["built"]))})
    return None


def _shape(written: str) -> Shape:
    return tuple(int(size) for size in re.findall(r"\d+", written))
