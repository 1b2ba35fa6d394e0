"""Converts tensors to NumPy arrays without importing a framework: tensors are recognised by their methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diagnostics.facts.array import Array
from diagnostics.facts.pipeline import OUTPUTS_SETTING

LARGEST = 50_000_000  # scalars; beyond that a copy to the host costs more than a rule could gain

PROBABILITY_SUM = 1e-3  # how far a row of probabilities may be from 1, in half precision
NEAR_BOUND = 0.01  # of an activation function's range: within this of a bound it is saturated
MOSTLY = 0.95  # of the examples and positions

LABEL_NAMES = ("labels", "label", "label_ids", "targets", "target", "y")
"""Names of the target in a batch that is a dict, the most common first."""

# Heads of transformers whose number of outputs is `config.num_labels`.
CLASSIFICATION_HEADS = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForImageClassification",
    "ForAudioClassification",
    "ForVideoClassification",
    "ForSemanticSegmentation",
)


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor (or behaves as one)."""
    return hasattr(value, "detach") and hasattr(value, "shape") and hasattr(value, "device")


def to_array(value: Any) -> Array | None:
    """Copy a tensor, array, number or nested list to NumPy; None if it is too large or not numeric.

    Half-precision floats come back as float32, which holds their every value.
    """
    import numpy as np

    try:
        if is_tensor(value):
            if value.numel() > LARGEST:
                return None
            value = value.detach()
            if value.is_floating_point() and value.element_size() < 4:
                value = value.float()
            value = value.cpu().numpy()
        array = np.array(value)
    except Exception:  # ragged lists, quantized or lost devices: there is nothing to show
        return None
    return array if array.dtype.kind in "biuf" and array.size <= LARGEST else None


def fields(outputs: Any) -> dict[str, Any]:
    """Name the parts of a batch, or of what a model returned; tuples without names count from "0"."""
    if isinstance(outputs, Mapping):
        return {str(key): value for key, value in outputs.items()}
    if isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
        return dict(zip(outputs._fields, outputs, strict=True))
    if isinstance(outputs, Sequence) and not isinstance(outputs, str):
        return {str(index): value for index, value in enumerate(outputs)}
    return {} if outputs is None else {"0": outputs}


def target_name(batch: Any) -> str | None:
    """Return the name of the target in a batch; tuples without names count from "0"."""
    names = list(fields(batch)) if isinstance(batch, Mapping | tuple | list) else []
    named = next((name for name in LABEL_NAMES if name in names), None)
    if named is not None or isinstance(batch, Mapping):
        return named
    return names[-1] if len(names) > 1 else None


def flat(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested dicts, lists and tuples: {"image": {"left": x}} becomes {"image.left": x}."""
    leaves: dict[str, Any] = {}
    for name, value in parts.items():
        nested = fields(value) if isinstance(value, Mapping | list | tuple) else {}
        if nested and not all(isinstance(part, int | float | str) for part in nested.values()):
            leaves |= {f"{name}.{inner}": leaf for inner, leaf in flat(nested).items()}
        else:
            leaves[name] = value
    return leaves


def with_parts(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a dict, list or tuple with each part changed; anything else as it is."""
    if isinstance(value, Mapping):
        return {name: change(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [change(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def describe(value: Any) -> str:
    """Describe a value: `a tensor of shape (32, 2)`."""
    if value is None:
        return "None"
    if is_tensor(value):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} with {', '.join(map(str, value)) or 'nothing in it'}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    article = "an" if type(value).__name__[0].lower() in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


def name_of(function: Any) -> str | None:
    """Name a loss or another callable as its user wrote it."""
    if function is None:
        return None
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name else type(function).__name__


def outputs_setting(model: Any) -> str:
    """Return where the number of outputs of this model is set."""
    name = type(model).__name__
    for head in CLASSIFICATION_HEADS:
        if head in name and hasattr(model, "config"):
            return f"AutoModel{head}.from_pretrained(..., num_labels={{}})"
    return OUTPUTS_SETTING


def configured_classes(model: Any) -> int | None:
    """Return the number of classes a transformers model is configured for; None if it does not classify."""
    config = getattr(model, "config", None)
    if not any(head in type(model).__name__ for head in CLASSIFICATION_HEADS):
        return None
    if getattr(config, "problem_type", None) not in (None, "single_label_classification"):
        return None
    classes = getattr(config, "num_labels", None)
    return classes if isinstance(classes, int) and classes > 1 else None  # one output means regression
