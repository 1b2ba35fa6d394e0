"""Decides whether code of a Keras program's own may be called beyond what the script does. Nothing is called."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

import keras

from diagnostics.collectors.isolation.harmless_code import EFFECTS, LIBRARIES, MUTATORS, Reading, is_library
from diagnostics.collectors.shared.pipeline import CannotJudge

TRUSTED = LIBRARIES | {"keras", "keras_hub", "keras_nlp", "keras_cv", "tensorflow", "tensorflow_probability"}
WRITES = EFFECTS | {
    *("summary", "print", "io", "py_function", "numpy_function", "save_weights", "export"),
    *("get_global_generator", "set_seed", "set_random_seed", "clear_session"),
}
ASSIGNS = MUTATORS | {
    *("assign", "assign_add", "assign_sub", "scatter_update", "scatter_add", "scatter_sub", "scatter_nd_update"),
    *("enqueue", "enqueue_many", "dequeue", "dequeue_many", "dequeue_up_to"),
}
CALLED = ("call", "__call__", "compute_mask", "__getattribute__", "__getattr__")
MADE_BY = ("__init__", "build", "get_config", "from_config")
STEPS = ("train_step", "test_step", "predict_step", "compute_loss", "compute_metrics", "fit", "compile")
FUNCTIONS = ("train_function", "test_function", "predict_function")
NOT_CALLED = frozenset((*MADE_BY, *STEPS, *FUNCTIONS, "quantize"))  # of what a layer holds: it is built
NOTICED = "running it could be noticed: {}"  # by the script
LOSS = ("compute_loss", "_compute_loss")

Calls = Iterable[tuple[Any, str]]


class Code:
    """Code that is read: see `Reading`.

    Args:
        calls: each a function or object that is called, with its name.
        layers: that are read on their own.
        copied: whether what the code changes of its own objects goes unnoticed.

    Attributes:
        objection: why it must not be called, as a clause; None if it may be.
        generators: of random numbers that it uses, as far as it was read.
    """

    def __init__(self, calls: Calls, layers: Iterable[Any] = (), *, copied: bool = False) -> None:
        self.objection: str | None = None
        self.generators: list[Any] = []
        apart = frozenset(map(id, layers))
        for call, name in calls:
            reading = Reading(
                NOT_CALLED,
                libraries=TRUSTED,
                effects=WRITES,
                mutators=ASSIGNS,
                apart=apart,
                unchanged=_is_unchanged,
                hands_over=True,
            )
            self.objection = self.objection or reading.objection(call, name, copied=copied)
            self.generators += reading.generators

    def check(self, what: str) -> None:
        """Refuse to run `what`, if the script would notice.

        Raises:
            CannotJudge: it would.
        """
        if self.objection is not None:
            raise CannotJudge(f"{what} was not run, because {NOTICED.format(self.objection)}")


def of_call(model: keras.Model, *, copied: bool = False) -> Code:
    """Read what a call of a model runs."""
    layers = list(model._flatten_layers())
    return Code((one for layer in layers for one in _of_layer(layer)), layers, copied=copied)


def of_loss(model: keras.Model) -> Code:
    """Read what computes the loss that a model is compiled with, penalties included."""
    own = [
        (MethodType(method, model), f"{type(model).__name__}.{name}")
        for name in LOSS
        if isinstance(method := getattr(type(model), name, None), FunctionType) and not _is_trusted(method)
    ]
    compiled = keras.tree.flatten(getattr(model, "loss", None))  # a loop may train a single layer
    losses = [one for loss in compiled for one in _of_object(loss, "the loss")]
    regularizers = [getattr(variable, "regularizer", None) for variable in model.variables]
    penalties = [one for part in regularizers for one in _of_object(part, "a regularizer")]
    return Code([*own, *losses, *penalties], model._flatten_layers())


def of_making(model: keras.Model) -> Code:
    """Read what builds a model from its configuration, and makes its weights."""
    layers = list(model._flatten_layers())
    makers = [
        (MethodType(method, layer), f"{type(layer).__name__}.{name}")
        for layer in layers
        for name in MADE_BY
        if (method := _method(type(layer), name)) is not None
    ]
    return Code(makers, layers, copied=True)


def of_optimizer(optimizer: Any) -> Code:
    """Read what an optimizer of its class does in a step; its rate apart."""
    kind = type(getattr(optimizer, "inner_optimizer", optimizer))
    return Code([] if _is_trusted(kind) else [(kind, kind.__name__)])


def of_rate(optimizer: Any) -> Code:
    """Read what computes the learning rate of a step."""
    rate = getattr(getattr(optimizer, "inner_optimizer", optimizer), "_learning_rate", None)
    return Code(_of_object(rate, "the schedule of the learning rate"))


def _of_layer(layer: Any) -> Iterator[tuple[Any, str]]:
    """Yield what a call of a layer runs and no library brings, with its name."""
    kind = type(layer)
    for name in CALLED:
        if (method := _method(kind, name)) is not None:
            yield MethodType(method, layer), f"{kind.__name__}.{name}"
    for name, value in vars(layer).items():
        if name.startswith("_") or name in NOT_CALLED or not callable(value) or isinstance(value, type):
            continue
        if not isinstance(value, keras.layers.Layer) and not _is_of_loss(name):
            yield from _of_object(value, f"{kind.__name__}.{name}")


def _is_of_loss(name: str) -> bool:
    """Whether an attribute is for the loss or for the weights, and no part of a call."""
    return name == "loss" or (
        name.endswith(("_regularizer", "_constraint", "_initializer")) and name[:9] != "activity_"
    )


def _of_object(value: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Yield a function or object that is called, and the functions that an object of a library holds."""
    if value is None or isinstance(value, str | keras.Variable) or not callable(value):
        return
    if isinstance(value, FunctionType | MethodType) or not _is_trusted(value):
        if not _is_trusted(value):
            yield from ((call, name) for call in _calls_of(value))
        return
    held = getattr(value, "__dict__", None) or {}
    yield from ((part, name) for part in held.values() if isinstance(part, FunctionType) and not _is_trusted(part))


def _calls_of(value: Any) -> list[Any]:
    """Return the methods that a call of an object runs; the object itself if it is no object of Keras' kinds."""
    methods = [_method(type(value), name) for name in ("call", "__call__")]
    return [MethodType(method, value) for method in methods if method is not None] or [value]


def _method(kind: type, name: str) -> FunctionType | None:
    """Return a method that no library brings."""
    method = getattr(kind, name, None)
    method = getattr(method, "__func__", method)  # of a class method
    method = getattr(method, "python_function", method)  # of a `tf.function`
    return method if isinstance(method, FunctionType) and not _is_trusted(method) else None


def _is_trusted(value: Any) -> bool:
    return is_library(value, TRUSTED)


def _is_unchanged(value: Any) -> bool:
    """Whether it is a tensor, or a variable whose value is replaced while the code runs."""
    tf = sys.modules.get("tensorflow")
    return isinstance(value, keras.Variable) or (tf is not None and isinstance(value, tf.Tensor))
