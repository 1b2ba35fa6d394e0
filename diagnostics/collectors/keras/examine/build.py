"""Checks the arguments of `examine` for a Keras model; imports neither Keras nor TensorFlow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from diagnostics.errors import InvalidInput, what

if TYPE_CHECKING:
    from .pipeline import KerasPipeline


def is_keras_model(target: Any) -> bool:
    """Whether this is a model of Keras; with the torch backend it is a `torch.nn.Module`, too."""
    model = getattr(sys.modules.get("keras"), "Model", None)
    return isinstance(model, type) and isinstance(target, model)


def keras_pipeline(
    model: Any,
    data: Any,
    loss_fn: Any,
    optimizer: Any,
    evaluation: Any,
    class_weights: bool | None = None,
    *,
    call: str = "examine",
) -> KerasPipeline:
    """Build the pipeline of a Keras model.

    Args:
        model: compiled.
        data: see `examine`.
        loss_fn: None.
        optimizer: None.
        evaluation: see `examine`.
        class_weights: whether `fit` is given any; None if not known.
        call: the name of the function that was given these.

    Raises:
        InvalidInput: another backend than TensorFlow, a model that is not compiled, or no data.
    """
    name = type(model).__name__
    pass_data = (
        f"Pass what fit is given: a tf.data.Dataset or a keras.utils.PyDataset, {call}(model, dataset), or "
        f"arrays, {call}(model, (x, y))."
    )
    backend = sys.modules["keras"].backend.backend()
    if backend != "tensorflow":
        raise InvalidInput(
            f"{call}() was given the Keras model {name}, and Keras runs on {_BACKENDS.get(backend, backend)} "
            "here. That is not supported yet; Keras on TensorFlow is: set KERAS_BACKEND=tensorflow in the "
            "environment before Keras is imported."
        )
    if loss_fn is not None or optimizer is not None:
        if _holds_numbers(data) and _holds_numbers(loss_fn):
            raise InvalidInput(
                f"{call}() was given the Keras model {name} and its data in two arguments. Pass inputs and "
                f"target as one: {call}(model, (x, y))."
            )
        extra = " and ".join(
            word for word, given in (("loss_fn", loss_fn), ("optimizer", optimizer)) if given is not None
        )
        raise InvalidInput(
            f"{call}() was given the Keras model {name} together with {extra}. A compiled model brings its "
            f"loss and its optimizer along: {call}(model, data)."
        )
    if not getattr(model, "compiled", False):
        raise InvalidInput(
            f"{call}() was given the Keras model {name}, which is not compiled: neither its loss nor its "
            "optimizer is known. Call model.compile(optimizer=..., loss=...) first, as for fit."
        )
    if data is None:
        raise InvalidInput(f"{call}() was given the Keras model {name} and no data. {pass_data}")
    from diagnostics.collectors.keras.replayable import calls_generator

    for word, given in (("data", data), ("evaluation", evaluation)):
        if calls_generator(given):
            raise InvalidInput(
                f"{call}() was given {what(given)} as {word}, which draws from a Python generator "
                "(from_generator). Reading from it would run that code once more, and what it yields only once "
                "would be lost to training. If the generator starts over for each iteration, pass some batches of "
                f"it: {call}(model, list(dataset.take(4))). If not, `diagnose run` examines the first batch that "
                "fit draws by itself."
            )
        if given is not None and (why := _not_data(given)) is not None:
            raise InvalidInput(f"{call}() was given {what(given)} as {word}{why} {pass_data}")
    from .pipeline import KerasPipeline

    return KerasPipeline(model, data, evaluation, class_weights)


_BACKENDS = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy", "openvino": "OpenVINO"}


def _not_data(data: Any) -> str | None:
    """Say why this cannot be what `fit` is given; None if it can."""
    if hasattr(data, "__next__"):
        return ": reading from it would take that away from training."
    keras, tf = sys.modules["keras"], sys.modules["tensorflow"]
    if isinstance(data, tf.data.Dataset | keras.utils.PyDataset) or _holds_numbers(data):
        return None
    if isinstance(data, dict | tuple) and data:
        leaves = [leaf for leaf in keras.tree.flatten(data) if leaf is not None]
        return None if leaves and all(map(_holds_numbers, leaves)) else ", and not all in it is an array."
    if isinstance(data, list) and data and all(isinstance(batch, dict | tuple) for batch in data):
        return None
    if isinstance(data, list):
        return ", which is not a list of batches (x, y)."
    return ", which is not data that is examined with a Keras model."


def _holds_numbers(value: Any) -> bool:
    """Whether this is an array or a tensor."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__getitem__")
