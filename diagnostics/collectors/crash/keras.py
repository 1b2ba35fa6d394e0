"""Recognises error messages of Keras 3 and TensorFlow, and reads the call of `fit` from the frames.

Keras cuts its own frames out of a traceback. What is left of `fit` is the handler that does so, and it holds what
`fit` was called with: the model and the data. Messages are read as `tracebacks.tensorflow_format` leaves them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from diagnostics.collectors.shared.arrays import LABEL_NAMES
from diagnostics.collectors.tracebacks.unknown_errors import of_packages
from diagnostics.facts.crash.data import (
    LabelBeyondOutputs,
    LabelsInInputsCrash,
    NoPathToParameters,
    RaggedColumns,
    ShapesDiffer,
    TargetMissing,
    TextInInputs,
    TokenBeyondEmbedding,
)

from .frames import Crash, Recognisers
from .messages.table import Found, find
from .messages.table import sizes as known_sizes
from .messages.table import sizes_or_none as sizes
from .pytorch import NAMELESS, column_lengths, differing_sizes, ragged_lengths

RECOGNISERS = Recognisers()


DENSE = "keras.layers.Dense({}) as the last layer"

_STEPS = ("fit", "evaluate", "train_on_batch", "test_on_batch")


@dataclass(frozen=True)
class _Call:
    """A call of `fit` or its like.

    Attributes:
        inputs: the structure of one batch's inputs, its leaves arrays or specs; None if it cannot be seen.
        has_target: whether a target comes with them; None if that cannot be seen.
    """

    model: Any
    x: Any
    inputs: Any = None
    has_target: bool | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.inputs) if isinstance(self.inputs, Mapping) else ()

    @property
    def known_inputs(self) -> tuple[str, ...]:
        """The names that the model takes; empty if it takes anything."""
        return tuple(getattr(self.model, "input_names", None) or ())


def calls(crash: Crash) -> Iterator[_Call]:
    """Yield the innermost call of `fit` or its like, and the validation within it."""
    for variables in crash.inward("error_handler", "train_on_batch", "test_on_batch"):
        function: Any = variables.get("fn")
        given: Mapping[str, Any]
        if getattr(function, "__name__", None) in _STEPS:
            given = inspect.signature(function).bind(*variables["args"], **variables["kwargs"]).arguments
        elif {"self", "x", "y"} <= set(variables):  # not every step has the handler
            given = variables
        else:
            continue
        yield _call(given["self"], given.get("x"), given.get("y"))
        validation = given.get("validation_data")
        if isinstance(validation, tuple | list):
            yield _call(given["self"], validation[0], validation[1] if len(validation) > 1 else None)
        elif validation is not None:
            yield _call(given["self"], validation, None)
        return


def _call(model: Any, x: Any, y: Any) -> _Call:
    spec = getattr(x, "element_spec", None)
    if spec is not None:
        parts = tuple(spec) if isinstance(spec, tuple | list) else (spec,)
        return _Call(model, x, parts[0], len(parts) > 1 and parts[1] is not None)
    if isinstance(x, Mapping) or hasattr(x, "shape") or (isinstance(x, list | tuple) and x):
        return _Call(model, x, x, y is not None)
    return _Call(model, x, None, True if y is not None else None)


_CALLS_STEP = re.compile(rf"\.({'|'.join(_STEPS)})\(")


@RECOGNISERS.asked
def _no_target(crash: Crash) -> LabelsInInputsCrash | TargetMissing | None:
    """Recognise a loss that got None as its target: it is raised by `fit` itself, not by the user's code."""
    facts = crash.facts
    if find(facts.message, "no-target") is None or "Arguments received by" in facts.message:
        return None
    last = next((n for n, frame in reversed(list(enumerate(facts.frames))) if frame.yours), None)
    handled = last is not None and any(frame.function == "error_handler" for frame in facts.frames[last:])
    if not handled or not any(frame.function.startswith("convert_to_") for frame in facts.frames[last:]):
        return None
    seen = list(calls(crash))
    if not seen:
        in_fit = last is not None and _CALLS_STEP.search(facts.frames[last].code or "")
        return LabelsInInputsCrash() if in_fit else None
    without = next((call for call in seen if not call.has_target), None)
    if without is None:
        return None
    labels = _label_among(without.names)
    unread = any(name not in without.known_inputs for name in without.names) if without.known_inputs else False
    if without.has_target is None:
        return LabelsInInputsCrash()
    if labels is None and not unread:
        return TargetMissing(without.names)
    return LabelsInInputsCrash(without.names or None, labels)


@RECOGNISERS.reading("keras-whole-shape")
def _labels_among_inputs(crash: Crash, found: Found) -> LabelsInInputsCrash | None:
    """Recognise a model whose inputs are shifted because the labels are one of them."""
    message = crash.facts.message
    if found.kind != "input":
        return None
    call = next(calls(crash), None)
    if call is not None:
        names, has_target = call.names, call.has_target
        extra = [name for name in names if name not in call.known_inputs]
    else:
        given = re.search(r"• inputs=\{([^\n]{0,4000})\}$", message, re.MULTILINE)
        names = tuple(re.findall(r"'([^']+)': '", given[1])) if given else ()
        has_target, extra = False, list(names)
    labels = _label_among(extra)
    return None if labels is None or has_target else LabelsInInputsCrash(names, labels)


def _label_among(names: Any) -> str | None:
    by_name = {name.lower(): name for name in names}
    return next((by_name[name] for name in LABEL_NAMES if name in by_name), None)


@RECOGNISERS.reading("keras-no-gradient")
def _nothing_to_differentiate(crash: Crash, found: Found) -> NoPathToParameters | LabelsInInputsCrash | None:
    # Before Keras 3 the message lists the variables, and within `fit` a loss without a target did not fail by
    # itself. A loop of one's own says the same where the loss does not come from the variables.
    functions = {frame.function for frame in crash.facts.frames}
    called = any(re.search(r"\.(?:fit|train_on_batch)\(", frame.code or "") for frame in crash.facts.frames)
    in_fit = called or bool(functions & {"fit", "train_step", "train_function", "train_on_batch"})
    return LabelsInInputsCrash() if found.kind == "listed" and in_fit else NoPathToParameters()


@RECOGNISERS.reading("keras-labels")
def _label_beyond_outputs(crash: Crash, found: Found) -> LabelBeyondOutputs | None:
    import numpy as np

    return LabelBeyondOutputs(
        label=int(found["label"]),
        labels=np.array(found["labels"].split(), dtype=np.int64),
        num_outputs=int(found["outputs"]),
        outputs_setting=DENSE,
    )


_KERAS_LOSS = "keras/src/losses/losses.py"


@RECOGNISERS.asked
def _shapes_differ(crash: Crash) -> ShapesDiffer | None:
    message = crash.facts.message
    found = find(message, "keras-loss-shapes")
    if found is not None and (found.kind != "broadcast" or "compile_loss" in message):
        outputs, targets = found.get("prediction"), found.get("target")
        if (axes := found.get("axes")) is not None:
            return ShapesDiffer((None,) * int(axes), sizes(found["array"]))
        if outputs is None or targets is None:
            return ShapesDiffer()
        # Keras leaves out the rows, but for its oldest versions.
        rows = (None,) if found.kind == "per example" and not outputs.startswith("None") else ()
        sparse = found.kind.startswith("sparse")
        return ShapesDiffer((*rows, *sizes(outputs)), (*rows, *sizes(targets)), sparse=sparse)
    found = find(message, "keras-element-wise")
    if found is None or found.kind == "merged" or sizes(found["one"])[1:] == sizes(found["other"])[1:] != ():
        return None  # where the rows alone differ, it is the batch
    one, other = sizes(found["one"]), sizes(found["other"])
    for variables in crash.inward():
        if {"y_true", "y_pred"} <= set(variables):
            prediction, target = (tuple(getattr(variables[name], "shape", ())) for name in ("y_pred", "y_true"))
            return ShapesDiffer(prediction, target) if {prediction, target} == {one, other} else None
    keras_loss = any(frame.file == _KERAS_LOSS for frame in crash.facts.frames[-3:])
    if keras_loss or re.search(r"= \w{1,80}\[[^\[\]]{0,400}\]\(data", message):  # Keras takes the target first
        prediction, target = other, one
    elif re.search(r"= \w{1,80}\[[^\[\]]{0,400}\]\([^,]{1,200}, data", message):
        prediction, target = one, other
    else:
        prediction, target = _by_model(crash, one, other)
    in_loss = keras_loss or of_packages("difference_in_loss").search(message)
    if in_loss or (prediction is not None and _right_in_step(crash)):
        return ShapesDiffer(prediction, target)
    return None


def _right_in_step(crash: Crash) -> bool:
    """Whether `fit` itself failed, neither a layer nor the user's code."""
    frames = crash.facts.frames
    handled = next((n for n, frame in enumerate(frames) if frame.function == "error_handler"), None)
    own = handled is None or any(frame.yours for frame in frames[handled:])
    return not own and "Arguments received by" not in crash.facts.message and "[Op:Sub]" in crash.facts.message


def _by_model(crash: Crash, one: Any, other: Any) -> tuple[Any, Any]:
    """Tell the prediction's shape by the size of the model's output; None if that does not tell."""
    call = next(calls(crash), None)
    shape = getattr(call and call.model, "output_shape", None)
    size = shape[-1] if isinstance(shape, tuple) and shape else None
    fits = [size is not None and of[-1:] == (size,) for of in (one, other)]
    if fits == [True, False]:
        return one, other
    return (other, one) if fits == [False, True] else (None, None)


@RECOGNISERS.reading("keras-tokens")
def _token_beyond_embedding(crash: Crash, found: Found) -> TokenBeyondEmbedding | None:
    within = crash.facts.message.lower() + " ".join(frame.file for frame in crash.facts.frames)
    alone = re.match(r"indices\[\d+,", found[0]) and not crash.facts.frames  # a table of ids, and nothing else
    if "embedding" not in within and not alone:
        return None
    return TokenBeyondEmbedding(offending=int(found["id"]), rows=int(found["rows"]))


_ROWS = ("tensors", "element", "value", "x")


@RECOGNISERS.reading("keras-ragged")
def _ragged_columns(crash: Crash, found: Found) -> RaggedColumns | None:
    match found.kind:
        case "batch":
            one, other = found["one"], found["other"]
            shapes = (known_sizes(one), known_sizes(other)) if "," in one else None
            return RaggedColumns(clash=differing_sizes(one, other), shapes=shapes)
        case "nested":
            return RaggedColumns(lengths=ragged_lengths(crash.inward(), _ROWS, _row_lengths))
        case "collated":
            collated = any(frame.file.startswith("datasets/utils/tf_utils") for frame in crash.facts.frames)
            return RaggedColumns() if collated else None
    lengths = ragged_lengths(({"x": call.x} for call in calls(crash)), _ROWS, _row_lengths)
    return RaggedColumns(lengths=lengths) if lengths else None


def _row_lengths(value: Any, name: str = NAMELESS) -> dict[str, tuple[int, ...]]:
    import numpy as np

    if isinstance(value, Mapping):
        return {c: s for key, part in value.items() for c, s in _row_lengths(part, str(key)).items()}
    if isinstance(value, tuple):
        return {c: s for part in value for c, s in _row_lengths(part, name).items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = list(value)
    lengths = column_lengths(value)
    return {name: lengths[NAMELESS]} if NAMELESS in lengths else {}


@RECOGNISERS.reading("text-inputs")
def _text_in_inputs(crash: Crash, found: Found) -> TextInInputs | None:
    message, call = crash.facts.message, next(calls(crash), None)
    columns = () if call is None else tuple(name for name in call.names if _has_text(call.inputs[name]))
    if found.kind == "preprocessor":
        return TextInInputs(columns, reads_tokens=True)
    if call is not None:
        layers = [type(layer).__name__ for layer in getattr(call.model, "_flatten_layers", list)()]
        reads_text = any("Embedding" in layer for layer in layers) and _has_text(call.inputs)
        return TextInInputs(columns, reads_tokens=True) if reads_text else None
    if found.kind == "unread" or "compile_loss" in message:  # then it may be the labels that are text
        return None
    in_model = re.search(r"\{\{node \w+", message) or "Arguments received by" in message
    return TextInInputs(reads_tokens="embedding" in message.lower()) if in_model else None


def _has_text(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_text(part) for part in value.values())
    if isinstance(value, list | tuple):
        return any(isinstance(part, str) or _has_text(part) for part in value[:1])
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "name", "").startswith("str") or getattr(dtype, "kind", "") == "U"
