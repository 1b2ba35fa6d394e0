"""Adds up the memory of a model found in the frames of a crash.

Models, optimizers and batches are known by what they can do: neither framework is imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from diagnostics.collectors.shared.arrays import flat, is_tensor
from diagnostics.collectors.tracebacks.unknown_errors import entries
from diagnostics.facts.crash.memory import ModelMemory

from .frames import Crash

_BATCH_NAMES = ("batch", "inputs", "model_inputs", "xb", "images", "input_ids")


def model_memory(crash: Crash) -> ModelMemory | None:
    """Return what the largest model in the frames holds, and the batch it was given; None if there is no model."""
    models = [model for model in _objects(crash) if _is_torch_model(model) or is_keras_model(model)]
    if not models:
        return None
    model = max(models, key=_weight_bytes)
    weights = _weight_bytes(model)
    if is_keras_model(model):
        optimizer, computed = getattr(model, "optimizer", None), 0
        gradients, held = _bytes(model.trainable_weights), _bytes(_keras_state(optimizer))
    else:
        found = (part for part in _objects(crash) if hasattr(part, "param_groups") and hasattr(part, "state"))
        optimizer = _bare(next(found, None))
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        computed = _bytes(parameter.grad for parameter in trainable if parameter.grad is not None)
        gradients, held = _bytes(trainable), 0 if optimizer is None else _bytes(_state_tensors(optimizer))
    return ModelMemory(
        model=type(model).__name__,
        weights=weights,
        gradients=gradients,
        optimizer=None if optimizer is None else type(optimizer).__name__,
        optimizer_state=held or _state_to_come(optimizer, gradients),
        present=weights + computed + held,
        library="keras" if is_keras_model(model) else "torch",
        batch_rows=_batch(crash, model),
    )


def _objects(crash: Crash) -> Iterator[Any]:
    """Yield what the frames' variables hold, and a trainer's model and optimizer, innermost first."""
    for variables in crash.inward():
        for value in variables.values():
            if isinstance(value, type):
                continue
            yield value
            if not _is_torch_model(value) and not is_keras_model(value):
                yield from (vars(value).get(name) for name in ("model", "optimizer") if hasattr(value, "__dict__"))


def _bare(optimizer: Any) -> Any:
    """Take an optimizer out of what accelerate wraps around it."""
    return optimizer.optimizer if type(optimizer).__module__.startswith("accelerate") else optimizer


def _is_torch_model(value: Any) -> bool:
    return hasattr(value, "named_parameters") and hasattr(value, "named_buffers") and not isinstance(value, type)


def is_keras_model(value: Any) -> bool:
    """Whether a value is a Keras model or layer that can be trained, of whatever version."""
    return hasattr(value, "trainable_weights") and hasattr(value, "count_params") and not isinstance(value, type)


def _weight_bytes(model: Any) -> int:
    return _bytes([*model.parameters(), *model.buffers()] if _is_torch_model(model) else model.weights)


def _state_tensors(optimizer: Any) -> Iterator[Any]:
    """Yield what an optimizer keeps for each weight, without its counters."""
    for state in optimizer.state.values():
        yield from (value for value in state.values() if is_tensor(value) and value.ndim)


def _state_to_come(optimizer: Any, trainable: int) -> int | None:
    """Return the bytes of state that the first step will make; None if this optimizer is not known."""
    if optimizer is None:
        return None
    factor = entries("state_per_weight").get(type(optimizer).__name__.lower())
    settings: Mapping[str, Any] = getattr(optimizer, "defaults", {})
    options = (settings.get(name, getattr(optimizer, name, 0)) for name in ("momentum", "amsgrad", "centered"))
    return None if factor is None else trainable * (factor + sum(map(bool, options)))


def keras_present(model: Any) -> int:
    """Return the bytes of a Keras model's weights and of its optimizer's state, as far as they exist."""
    return _bytes(model.weights) + _bytes(_keras_state(getattr(model, "optimizer", None)))


def _keras_state(optimizer: Any) -> list[Any]:
    """Return what an optimizer of Keras keeps for each weight, without its counters."""
    return [variable for variable in getattr(optimizer, "variables", []) if len(variable.shape)]


def _bytes(arrays: Iterable[Any]) -> int:
    """Return the bytes of tensors or variables, of tied ones once."""
    each = {id(array): array for array in arrays}.values()
    return sum(math.prod(map(int, array.shape)) * (dtype_bytes(str(array.dtype)) or 1) for array in each)


def dtype_bytes(name: str) -> int | None:
    """Return the bytes of one element, by a dtype's name in Python or in C++; None if it is not known."""
    bits = re.search(r"\d+", entries("dtypes").get(name, name))
    return int(bits[0]) // 8 if bits else 1 if name.endswith("bool") else None


def _batch(crash: Crash, model: Any) -> int | None:
    """Return the rows of the batch that the model was called with."""
    for variables in crash.inward():
        if variables.get("self") is model and "args" in variables:  # torch.nn.Module's own call
            rows = _rows({"given": variables["args"], **variables.get("kwargs", {})})
            if rows is not None:
                return rows
    for variables in reversed(crash.own()):
        for name in _BATCH_NAMES:
            rows = _rows({name: variables.get(name)})
            if rows is not None:
                return rows
    return None


def _rows(named: Mapping[str, Any]) -> int | None:
    tensors = (part for part in flat(named).values() if is_tensor(part) and part.ndim)
    return next((int(tensor.shape[0]) for tensor in tensors), None)
