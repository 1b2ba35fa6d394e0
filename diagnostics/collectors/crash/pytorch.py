"""Recognises error messages of PyTorch, transformers, datasets and scikit-learn, and reads the frames.

Each recogniser takes a crash and returns a fact, or None. They know the wording; the rules do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import is_tensor, outputs_setting, to_array
from diagnostics.facts.crash import (
    DevicesDiffer,
    LabelBeyondOutputs,
    LossMissing,
    MetricGotLogits,
    NoPathToParameters,
    NotProbabilities,
    RaggedColumns,
    ShapesDiffer,
    Symptom,
    TokenBeyondEmbedding,
    TokensMissing,
)
from diagnostics.facts.pipeline import OUTPUTS_SETTING

from .frames import Crash


def _label_beyond_outputs(crash: Crash) -> LabelBeyondOutputs | None:
    found = re.search(r"Target (-?\d+) is out of bounds", crash.facts.message)
    if found is None:
        return None
    label = int(found[1])
    for variables in crash.inward("cross_entropy", "nll_loss"):
        logits: Any = variables.get("input")
        target: Any = variables.get("target")
        if is_tensor(logits) and is_tensor(target) and logits.ndim >= 1:
            return LabelBeyondOutputs(
                label=label,
                labels=to_array(target),
                num_outputs=int(logits.shape[min(1, logits.ndim - 1)]),
                ignore_index=variables.get("ignore_index"),
                outputs_setting=_setting_in_frames(crash),
            )
    return LabelBeyondOutputs(label=label)


NAMELESS = "the examples"  # stands for the column's name where examples are not dicts or tuples


def _setting_in_frames(crash: Crash) -> str:
    for variables in crash.inward():
        setting = outputs_setting(variables.get("self"))
        if setting != OUTPUTS_SETTING:
            return setting
    return OUTPUTS_SETTING


_RAGGED = (
    r"expected sequence of length (?P<one>\d+) at dim \d+ \(got (?P<other>\d+)\)",
    r"each tensor to be equal size, but got \[(?P<one>[^\]]*)\] at entry 0 and \[(?P<other>[^\]]*)\]",
    r"setting an array element with a sequence.*inhomogeneous shape",
    r"each element in list of batch should be of equal size",
    r"activate truncation and/or padding(?:.*Perhaps your features \(`(?P<column>[^`]+)` in this case\))?",
)


def _ragged_columns(crash: Crash) -> RaggedColumns | None:
    for pattern in _RAGGED:
        found = re.search(pattern, crash.facts.message, re.DOTALL)
        if found is not None:
            named = found.groupdict()
            return RaggedColumns(
                lengths=_ragged_lengths(crash, named.get("column")),
                clash=differing_sizes(named.get("one") or "", named.get("other") or ""),
                column=named.get("column"),
                axes=named["one"].count(",") + 1 if "," in (named.get("one") or "") else None,
            )
    return None


def differing_sizes(one: str, other: str) -> tuple[int, int] | None:
    """Return the first sizes in which two shapes, written as `3, 32, 40`, differ."""
    sizes = ([int(size) for size in shape.split(",") if size.strip()] for shape in (one, other))
    return next(((a, b) for a, b in zip(*sizes, strict=False) if a != b), None)


def _ragged_lengths(crash: Crash, column: str | None = None) -> dict[str, tuple[int, ...]]:
    """Look in the frames for the examples that were being collated: a list of dicts, tuples or sequences.

    The frames further out know the columns' names; the innermost may see the values of one column only. Where
    the message names the column, the others are left out: they may have been padded since.
    """
    nameless: dict[str, tuple[int, ...]] = {}
    for variables in crash.inward():
        for name in ("features", "batch", "examples", "data", "encoded_inputs", "value"):
            lengths = column_lengths(variables.get(name))
            if column is not None and NAMELESS in lengths:
                lengths = {column: lengths[NAMELESS]}
            ragged = {c: sizes for c, sizes in lengths.items() if len(set(sizes)) > 1 and column in (None, c)}
            if ragged and NAMELESS not in ragged:
                return ragged
            nameless = nameless or ragged
    return nameless


def column_lengths(examples: Any) -> dict[str, tuple[int, ...]]:
    """Return the length of each example by column, for the columns that hold sequences.

    Of arrays with several axes, the first in which the examples differ is measured.

    Args:
        examples: a list of dicts, of tuples, or of sequences of numbers; anything else gives an empty answer.
    """
    if not isinstance(examples, Sequence) or isinstance(examples, str) or len(examples) < 2:
        return {}
    columns: Mapping[str, list[Any]]
    if all(isinstance(example, Mapping) for example in examples):
        shared = set.intersection(*(set(example) for example in examples))
        columns = {str(name): [example[name] for example in examples] for name in examples[0] if name in shared}
    elif all(isinstance(example, tuple) for example in examples):
        columns = {str(i): list(column) for i, column in enumerate(zip(*examples, strict=False))}
    else:
        columns = {NAMELESS: list(examples)}
    lengths = {}
    for name, column in columns.items():
        shapes = [_shape(value) for value in column]
        if all(shapes) and len({len(shape) for shape in shapes}) == 1:
            axis = next((i for i, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1), 0)
            lengths[name] = tuple(shape[axis] for shape in shapes)
    return lengths


def _shape(value: Any) -> tuple[int, ...]:
    if is_tensor(value) or isinstance(value, np.ndarray):
        return tuple(int(size) for size in value.shape)
    return (len(value),) if isinstance(value, list | tuple) else ()


def _token_beyond_embedding(crash: Crash) -> TokenBeyondEmbedding | None:
    if crash.facts.exception not in ("IndexError", "") or "index out of range in self" not in crash.facts.message:
        return None
    for variables in crash.inward("embedding"):
        ids: Any = variables.get("input")
        weight: Any = variables.get("weight")
        if is_tensor(ids) and is_tensor(weight):
            return TokenBeyondEmbedding(ids=to_array(ids), rows=int(weight.shape[0]))
    return TokenBeyondEmbedding()


_SIZES_DIFFER = re.compile(
    r"The (?:expanded )?size of (?:the tensor|tensor a) \((\d+)\) must match the "
    r"(?:existing size|size of tensor b) \((\d+)\)"
)


def _position_beyond_table(crash: Crash) -> TokenBeyondEmbedding | None:
    """Recognise a sequence longer than the position ids that transformers prepares."""
    found, last = _SIZES_DIFFER.search(crash.facts.message), crash.facts.frames[-1]
    in_model = last.file.replace("\\", "/").startswith("transformers/models/")
    if found is None or not in_model or not re.search(r"position|buffered_token_type_ids", last.code or ""):
        return None
    length, rows = int(found[1]), int(found[2])
    return TokenBeyondEmbedding(ids=np.arange(length), rows=rows) if length > rows else None


_NO_TOKENS = (
    r"You (must|have to|cannot|should) specify (exactly one of|either) input_ids (or|and) inputs_embeds",
    r"You should supply an encoding or a list of encodings to this method that includes input_ids",
    r"No columns in the dataset match the model's forward method signature",
    r"too many dimensions 'str'",
)


def _tokens_missing(crash: Crash) -> TokensMissing | None:
    message = crash.facts.message
    if not any(re.search(pattern, message) for pattern in _NO_TOKENS):
        return None
    text_columns = _text_columns(crash)
    for variables in crash.inward():
        for name in ("inputs", "features", "batch"):
            received = variables.get(name)
            if isinstance(received, list | tuple) and received:
                received = received[0]
            if isinstance(received, Mapping):
                if text_columns is None:
                    text_columns = tuple(str(n) for n, v in received.items() if isinstance(v, str)) or None
                names = tuple(str(name) for name in received if name != "num_items_in_batch")  # the Trainer's own
                return TokensMissing(names, text_columns)
    found = re.search(r"includes input_ids, but you provided (.*)", message)
    return TokensMissing(None if found is None else tuple(re.findall(r"'([^']+)'", found[1])), text_columns)


def _text_columns(crash: Crash) -> tuple[str, ...] | None:
    """Read from a Trainer or a dataset in the frames which of its columns hold text."""
    for variables in crash.inward():
        for owner in (variables.get("self"), variables.get("dataset")):
            dataset = getattr(owner, "train_dataset", owner)
            features = getattr(dataset, "features", None)
            if isinstance(features, Mapping):
                return tuple(str(name) for name, kind in features.items() if is_text(kind))
    return None


def is_text(feature: Any) -> bool:
    """Whether a feature of a Hugging Face dataset holds a string."""
    return str(getattr(feature, "dtype", "")) in ("string", "large_string", "string_view")


def _loss_missing(crash: Crash) -> LossMissing | None:
    found = re.search(
        r"did not return a loss from the inputs, only the following keys: (?P<returned>[^.]*)\. "
        r"For reference, the inputs it received are (?P<received>[^.]*)\.",
        crash.facts.message,
    )
    if found is None:
        return None
    returned, received = (tuple(n for n in found[part].split(",") if n) for part in ("returned", "received"))
    return LossMissing(returned, received)


def _no_path_to_parameters(crash: Crash) -> NoPathToParameters | None:
    if "does not require grad and does not have a grad_fn" not in crash.facts.message:
        return None
    return NoPathToParameters(adapters=any(_has_adapters(v) for frame in crash.inward() for v in frame.values()))


def _has_adapters(value: Any) -> bool:
    """Whether this is a model with PEFT's adapters, or holds one as its model, as a Trainer does."""
    attributes = getattr(value, "__dict__", {})
    return "peft_config" in attributes or "peft_config" in getattr(attributes.get("model"), "__dict__", {})


_SIZE = r"\(torch\.Size\(\[(?P<{}>[^\]]*)\]\)\)"
_SHAPES_DIFFER = (
    rf"Using a target size {_SIZE.format('target')} that is different to the input size "
    rf"{_SIZE.format('prediction')}",
    rf"Target size {_SIZE.format('target')} must be the same as input size {_SIZE.format('prediction')}",
    r"Expected input batch_size \(\d+\) to match target batch_size",
    r"Expected target size \[[^\]]*\], got \[",
    r"Expected floating point type for target with class probabilities",
)
_WANTS_INDICES = (
    r"(?:0D or )?1D target tensor expected, multi-target not supported",
    r"[Oo]nly batches of spatial targets supported \(3D tensors\) but got targets of (?:dimension|size)",
)
_STRETCHING = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_BROADCAST = "must match the size of tensor b"  # any operation says so: it counts only within one of these losses


def _shapes_differ(crash: Crash) -> ShapesDiffer | None:
    message = crash.facts.message
    found = next((found for pattern in _SHAPES_DIFFER if (found := re.search(pattern, message))), None)
    wants_indices = any(re.search(pattern, message) for pattern in _WANTS_INDICES)
    stretched = _BROADCAST in message and any(frame.function in _STRETCHING for frame in crash.facts.frames[-3:])
    if found is None and not stretched and not wants_indices:
        return None
    for variables in crash.inward():
        prediction, target = variables.get("input"), variables.get("target")
        if is_tensor(prediction) and is_tensor(target):
            return ShapesDiffer(_shape(prediction), _shape(target), wants_indices)
    if found is None or "target" not in found.groupdict():
        return ShapesDiffer(wants_indices=wants_indices)
    prediction, target = (
        tuple(int(size) for size in found[name].split(",") if size.strip()) for name in ("prediction", "target")
    )
    return ShapesDiffer(prediction, target)


def _not_probabilities(crash: Crash) -> NotProbabilities | None:
    if "all elements of input should be between 0 and 1" not in crash.facts.message:
        return None
    for variables in crash.inward("binary_cross_entropy"):
        prediction = to_array(variables.get("input"))
        if prediction is not None and prediction.size:
            finite = bool(np.isfinite(prediction).all())  # NaN fails alike, and is another bug
            return NotProbabilities(float(prediction.min()), float(prediction.max())) if finite else None
    return NotProbabilities()


_DEVICES = (
    r"(Expected all tensors to be on|should be on) the same device|is not on the expected device",
    r"Expected object of (device type|backend) (cuda|cpu|CUDA|CPU) but got (device type|backend) "
    r"(cuda|cpu|CUDA|CPU)",
    r"indices should be either on (cpu|\w+) or on the same device as the indexed tensor",
    r"can't convert (CUDA tensor|(cuda:\d+|mps(:\d+)?) device type tensor) to numpy",
    r"Input type \(torch\.cuda\.\w+\) and (weight|bias) type \(torch\.\w+Tensor\) should be the same",
    r"Input type \(torch\.\w+Tensor\) and (weight|bias) type \(torch\.cuda\.\w+\) should be the same",
)


def _devices_differ(crash: Crash) -> DevicesDiffer | None:
    message = crash.facts.message
    if not any(re.search(pattern, message) for pattern in _DEVICES):
        return None
    devices = tuple(dict.fromkeys(re.findall(r"\b(cpu|meta|mps|(?:cuda|xpu|hpu|npu):\d+|cuda)\b", message)))
    tensors: dict[str, str] = {}
    for variables in crash.inward():
        tensors = {name: str(value.device) for name, value in variables.items() if is_tensor(value)}
        module = variables.get("self")
        for name, parameter in getattr(module, "_parameters", {}).items():
            if parameter is not None:
                tensors[f"self.{name}"] = str(parameter.device)
        if len(set(tensors.values())) > 1:
            break
        tensors = {}
    return DevicesDiffer(devices, tensors, to_numpy="tensor to numpy" in message)


def _metric_got_logits(crash: Crash) -> MetricGotLogits | None:
    if not re.search(
        r"Classification metrics can't handle a mix of [\w-]+ and (continuous(-multioutput)?|unknown) targets"
        r"|Classification metrics can't handle a mix of continuous(-multioutput)? and [\w-]+ targets"
        # Hugging Face's evaluate, which prints what it was given: rows of fractions, where it wants whole numbers
        r"|match the expected format\.\s(.|\n)*'predictions': Value\((dtype=)?'int\d+'"
        r"(.|\n)*Input predictions: (tensor\()?\[+\s*-?\d*\.\d",
        crash.facts.message,
    ):
        return None
    for variables in crash.inward("_check_targets", "add_batch"):
        for name in ("y_pred", "y_true", "predictions"):
            scores = to_array(variables.get(name))
            if scores is not None and scores.dtype.kind == "f" and (scores != scores.round()).any():
                return MetricGotLogits(tuple(scores.shape))
    return MetricGotLogits()


RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (
    _label_beyond_outputs,
    _ragged_columns,
    _token_beyond_embedding,
    _position_beyond_table,
    _tokens_missing,
    _loss_missing,
    _no_path_to_parameters,
    _shapes_differ,
    _not_probabilities,
    _devices_differ,
    _metric_got_logits,
)
