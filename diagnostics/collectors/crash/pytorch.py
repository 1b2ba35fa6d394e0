"""Recognises error messages of PyTorch, transformers, datasets and scikit-learn, and reads the frames.

Each recogniser takes a crash and returns a fact, or None. They know the wording; the rules do not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from diagnostics.collectors.shared.arrays import is_tensor, outputs_setting, to_array
from diagnostics.collectors.tracebacks.unknown_errors import entries, of_packages
from diagnostics.facts.crash import CheckpointKeysDiffer, DevicesDiffer, DtypesDiffer, KnownFailure
from diagnostics.facts.crash.data import (
    LabelBeyondOutputs,
    LossMissing,
    NoPathToParameters,
    NotProbabilities,
    RaggedColumns,
    ShapesDiffer,
    TokenBeyondEmbedding,
    TokensMissing,
)
from diagnostics.facts.loss_contracts import functions_for
from diagnostics.facts.pipeline import OUTPUTS_SETTING

from .frames import Crash, Recognisers
from .messages.known import explained
from .messages.table import Found, find, sizes

RECOGNISERS = Recognisers()
NEXT = Recognisers()

_ODD = (
    re.compile(r"but got (?P<name>\w{1,40}) is on (?P<device>\w{1,8}(?::\d+)?), different from other tensors"),
    re.compile(r" and (?P<device>\w{1,8}(?::\d+)?)! \(when checking argument for argument (?P<name>\w{1,40}) in "),
)
"""Newer and older releases name the argument that differs from the ones before it."""


def _holding(crash: Crash, *names: str, functions: Iterable[str] = ()) -> Mapping[str, Any] | None:
    """Return the variables of the innermost frame, perhaps of a function, that holds tensors of these names."""
    held = crash.inward(*functions)
    return next((variables for variables in held if all(is_tensor(variables.get(name)) for name in names)), None)


@RECOGNISERS.reading("torch-labels")
def _label_beyond_outputs(crash: Crash, found: Found) -> LabelBeyondOutputs | None:
    label = found.number("label")
    held = _holding(crash, "input", "target", functions=functions_for("classes"))
    if held is None or held["input"].ndim < 1:
        return LabelBeyondOutputs(label=label)
    settings = (outputs_setting(variables.get("self")) for variables in crash.inward())
    return LabelBeyondOutputs(
        label=label,
        labels=to_array(held["target"]),
        num_outputs=int(held["input"].shape[min(1, held["input"].ndim - 1)]),
        ignore_index=held.get("ignore_index"),
        outputs_setting=next((told for told in settings if told != OUTPUTS_SETTING), OUTPUTS_SETTING),
    )


_UNEVEN = re.compile(r"expected sequence of length (?P<one>\d{1,15}) at dim \d{1,3} \(got (?P<other>\d{1,15})\)")
STRINGS = "too many dimensions 'str'"  # of the exception from which the one about padding was raised
NAMELESS = "the examples"  # stands for the column's name where examples are not dicts or tuples


@RECOGNISERS.reading("torch-ragged")
def _ragged_columns(crash: Crash, found: Found) -> RaggedColumns | KnownFailure | None:
    one, column = found.get("one") or "", found.get("column")
    lengths = ragged_lengths(crash.inward(), _EXAMPLES, column_lengths, column)
    if found.kind == "open" and not lengths:
        strings = find(STRINGS, "no-tokens") if STRINGS in crash.log else None
        if strings is not None:
            return explained(strings)
        uneven = _UNEVEN.search(crash.log)
        clash = None if uneven is None else (int(uneven["one"]), int(uneven["other"]))
        return RaggedColumns(column=column, clash=clash, is_open=clash is None)
    other = found.get("other") or ""
    return RaggedColumns(
        lengths=lengths,
        clash=differing_sizes(one, other),
        column=column,
        shapes=(sizes(one), sizes(other)) if "," in one else None,
    )


def differing_sizes(one: str, other: str) -> tuple[int, int] | None:
    """Return the first sizes in which two shapes, written as `3, 32, 40`, differ."""
    return next(((a, b) for a, b in zip(sizes(one), sizes(other), strict=False) if a != b), None)


_EXAMPLES = ("features", "batch", "examples", "data", "encoded_inputs", "value")
"""What functions that collate call the examples: a list of dicts, tuples or sequences."""


def ragged_lengths(
    frames: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    measure: Callable[[Any], dict[str, tuple[int, ...]]],
    column: str | None = None,
) -> dict[str, tuple[int, ...]]:
    """Look in the frames, innermost first, for the columns whose examples differ in length.

    The frames further out know the columns' names; the innermost may see the values of one column only. Where
    the message names the column, the others are left out: they may have been padded since.
    """
    nameless: dict[str, tuple[int, ...]] = {}
    for variables in frames:
        for name in names:
            lengths = measure(variables.get(name))
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
    import numpy as np

    if is_tensor(value) or isinstance(value, np.ndarray):
        return tuple(int(size) for size in value.shape)
    return (len(value),) if isinstance(value, list | tuple) else ()


@RECOGNISERS.reading("torch-tokens")
def _token_beyond_embedding(crash: Crash, found: Found) -> TokenBeyondEmbedding | None:
    if crash.facts.exception not in (found.message.exception, ""):
        return None
    if (held := _holding(crash, "input", "weight", functions=["embedding"])) is not None:
        return TokenBeyondEmbedding(ids=to_array(held["input"]), rows=int(held["weight"].shape[0]))
    return TokenBeyondEmbedding(rows=found.number("rows"), offending=found.number("index"))


@RECOGNISERS.reading("torch-element-wise")
def _position_beyond_table(crash: Crash, found: Found) -> TokenBeyondEmbedding | None:
    """Recognise a sequence longer than the position ids that transformers prepares."""
    last = crash.facts.frames[-1]
    in_model = last.file.replace("\\", "/").startswith("transformers/models/")
    if not in_model or not re.search(r"position|buffered_token_type_ids", last.code or ""):
        return None
    import numpy as np

    length, rows = int(found["one"]), int(found["other"])
    return TokenBeyondEmbedding(ids=np.arange(length), rows=rows) if length > rows else None


@RECOGNISERS.reading("no-tokens")
def _tokens_missing(crash: Crash, found: Found) -> TokensMissing | None:
    columns = _columns(crash)
    text_columns = None if columns is None else tuple(name for name, of_text in columns.items() if of_text)
    for variables in crash.inward():
        for name in ("inputs", "features", "batch"):
            received = variables.get(name)
            if isinstance(received, list | tuple) and received:
                received = received[0]
            if isinstance(received, Mapping):
                if text_columns is None:
                    text_columns = tuple(str(n) for n, v in received.items() if isinstance(v, str)) or None
                names = tuple(str(name) for name in received if name != "num_items_in_batch")  # the Trainer's own
                if found.kind == "strings" and any(name.endswith("input_ids") for name in names):
                    return None
                return TokensMissing(names, text_columns)
    if found.kind == "strings":
        return None  # they may lie beside the tokens
    provided = found.get("names")
    return TokensMissing(None if provided is None else tuple(re.findall(r"'([^']+)'", provided)), text_columns)


def _columns(crash: Crash) -> dict[str, bool] | None:
    """Return the columns of the dataset in the frames, and whether each holds text; None if there is none."""
    from diagnostics.collectors.shared.dataset_rows import text_by_column  # NumPy comes with it

    for variables in crash.inward():
        for owner in (variables.get("self"), variables.get("dataset")):
            if (columns := text_by_column(getattr(owner, "train_dataset", owner))) is not None:
                return columns
    return None


@RECOGNISERS.reading("no-loss")
def _loss_missing(crash: Crash, found: Found) -> LossMissing | None:
    returned, received = (tuple(n for n in found[part].split(",") if n) for part in ("returned", "received"))
    unread = (name for name, of_text in (_columns(crash) or {}).items() if not of_text and name not in received)
    return LossMissing(returned, received, tuple(unread))


@RECOGNISERS.reading("torch-no-gradient")
def _no_path_to_parameters(crash: Crash, found: Found) -> NoPathToParameters:
    return NoPathToParameters(any(_has_adapters(v) for frame in crash.inward() for v in frame.values()))


def _has_adapters(value: Any) -> bool:
    """Whether this is a model with PEFT's adapters, or holds one as its model, as a Trainer does."""
    attributes = getattr(value, "__dict__", {})
    return "peft_config" in attributes or "peft_config" in getattr(attributes.get("model"), "__dict__", {})


@RECOGNISERS.asked
def _shapes_differ(crash: Crash) -> ShapesDiffer | None:
    message = crash.facts.message
    found = find(message, "torch-loss-shapes")
    if found is None:  # any operation says so: it counts only within one of these losses
        found = find(message, "torch-element-wise")
        in_loss = any(frame.function in functions_for("numbers") for frame in crash.facts.frames[-3:])
        if found is None or found.kind != "operands" or not in_loss:
            return None
    wants_indices = found.kind == "indices"
    if (held := _holding(crash, "input", "target")) is not None:
        return ShapesDiffer(_shape(held["input"]), _shape(held["target"]), wants_indices)
    return ShapesDiffer(
        found.sizes("prediction"),
        found.sizes("target"),
        wants_indices,
        rows=(int(found["predictions"]), int(found["targets"])) if found.kind == "rows" else None,
        asked=(sizes(found["wanted"]), sizes(found["got"])) if found.kind == "classes axis" else None,
    )


@RECOGNISERS.reading("probabilities")
def _not_probabilities(crash: Crash, found: Found) -> NotProbabilities | None:
    for variables in crash.inward("binary_cross_entropy"):
        prediction = to_array(variables.get("input"))
        if prediction is not None and prediction.size:
            low, high = float(prediction.min()), float(prediction.max())
            return NotProbabilities(low, high) if math.isfinite(low + high) else None  # NaN is another bug
    return NotProbabilities()


@RECOGNISERS.reading("devices")
def _devices_differ(crash: Crash, found: Found) -> DevicesDiffer:
    message = crash.facts.message
    devices = tuple(dict.fromkeys(re.findall(r"\b(cpu|meta|mps|(?:cuda|xpu|hpu|npu):\d+|cuda)\b", message)))
    by_file = zip((frame.file for frame in reversed(crash.facts.frames)), crash.inward(), strict=False)
    inward = [held for file, held in by_file if not of_packages("decomposed").match(file)]
    apart = _apart(crash, inward, lambda tensor: str(tensor.device))
    parts = [part for variables in inward for part in _parts_of_module(variables)]
    odd = next((told for wording in _ODD if (told := wording.search(message))), None)
    return DevicesDiffer(
        devices,
        {name: str(value.device) for name, value in apart.items()},
        odd=odd and (odd["name"], odd["device"]),
        registered=tuple(name for name, value in apart.items() if any(value is part for part in parts)),
    )


def _parts_of_module(variables: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parameters and buffers of the module whose method a frame runs: `to` moves them with it."""
    for kind in ("_parameters", "_buffers"):
        yield from getattr(variables.get("self"), kind, {}).values()


def _apart(crash: Crash, frames: Iterable[Mapping[str, Any]], told: Callable[[Any], str]) -> Mapping[str, Any]:
    """Return the tensors of the failed line, or else of the innermost frame, in which they differ."""
    own = {} if crash.expression is None else crash.expression.tensors()
    each = (held for held in (own, *map(_tensors_of, frames)) if len({told(one) for one in held.values()}) > 1)
    return next(each, {})


def _tensors_of(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors among the variables of a frame, and the parameters of its module."""
    held: Mapping[str, Any] = getattr(variables.get("self"), "_parameters", {})
    parameters = {f"self.{name}": value for name, value in held.items() if value is not None}
    return {**{name: value for name, value in variables.items() if is_tensor(value)}, **parameters}


@NEXT.reading("dtypes")
def _dtypes_differ(crash: Crash, found: Found) -> DtypesDiffer | None:
    if _on_two_devices(found):
        return None
    got, wanted = _dtype(found.get("got")), _dtype(found.get("wanted"))
    if found.kind in ("classes", "indices"):
        wanted = "int64"
    if found.kind == "result":
        return DtypesDiffer("target" if _within_loss(crash) else "result", got, wanted, None, _dtypes(crash))
    named = _dtypes(crash) if found.kind != "integers" else {}
    library = "tensorflow" if found.message.framework in ("TensorFlow", "Keras") else "torch"
    return DtypesDiffer(found.kind, got, wanted, found.get("operation"), named, library)


def _within_loss(crash: Crash) -> bool:
    """Whether one of PyTorch's losses was called: an operation in place fails in the same words."""
    return any(
        "loss" in frame.function.lower() or "binary_cross_entropy" in frame.function
        for frame in crash.facts.frames
    )


def _dtype(name: str | None) -> str | None:
    """Write a dtype as Python does, from C++'s name or an old tensor class: `torch.DoubleTensor` is float64."""
    if name is None:
        return None
    plain = name.rpartition(".")[2].rpartition(":")[2].removesuffix("Tensor").lower()
    return str(entries("dtypes").get(plain, plain))


def _on_two_devices(found: Found) -> bool:
    """Whether the message names a CUDA tensor class and a CPU one: then the devices differ."""
    names = [name for part in ("got", "wanted") if (name := found.get(part))]
    return len({"cuda" in name for name in names}) == 2 and all("Tensor" in name for name in names)


def _dtypes(crash: Crash) -> dict[str, str]:
    apart = _apart(crash, crash.inward(), lambda tensor: str(tensor.dtype))
    return {name: str(value.dtype).removeprefix("torch.") for name, value in apart.items()}


_LISTED_KEYS = r"{} key\(s\) in state_dict:((?:\s*\"[^\"]+\",?)+)"


@NEXT.reading("checkpoints")
def _checkpoint_keys_differ(crash: Crash, found: Found) -> CheckpointKeysDiffer | None:
    message = crash.facts.message
    model = re.search(r"Error\(s\) in loading state_dict for (\w+)", message)
    lists = [re.search(_LISTED_KEYS.format(kind), message) for kind in ("Missing", "Unexpected")]
    missing, unexpected = (tuple(re.findall(r'"([^"]+)"', keys[1])) if keys else () for keys in lists)
    if not missing and not unexpected:
        return None
    return CheckpointKeysDiffer("" if model is None else model[1], missing, unexpected)
