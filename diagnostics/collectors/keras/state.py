"""Restores the global state that examining a Keras pipeline on TensorFlow could change."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import BuiltinMethodType, CodeType, FunctionType
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.isolation.rng import generators_within, is_generator

from .harmless import of_call, of_loss
from .internals import context, global_state
from .values import array_of

_SEED_GENERATOR = "global_seed_generator"
_NAME_COUNTERS = "object_name_uids"


@contextmanager
def global_states_kept(*roots: Any, random_states: bool = True) -> Iterator[None]:
    """Restore on leaving: Python's, NumPy's, TensorFlow's and Keras' generators, and Keras' counters of names.

    Keras numbers what it makes (`dense_3`), and draws the seeds of new layers from Python's generator.

    Args:
        roots: data that may carry generators of its own; they are restored, too.
        random_states: False where other threads may draw meanwhile, such as those that load data: to restore a
            state would make them draw the same numbers again. Then only the counters are restored.
    """
    counters = dict(global_state.get_global_attribute(_NAME_COUNTERS) or {})
    try:
        with _random_states_kept(*roots) if random_states else nullcontext():
            yield
    finally:
        now = global_state.get_global_attribute(_NAME_COUNTERS)
        if now is not None:
            now.clear()
            now.update(counters)


@contextmanager
def _random_states_kept(*roots: Any) -> Iterator[None]:
    own = [(generator, generator.state()) for generator in generators_within(*roots)]
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    eager = getattr(context.context(), "_rng", None)  # there once a seed was set
    eager_state = eager.getstate() if eager is not None else None
    generator: Any = global_state.get_global_attribute(_SEED_GENERATOR)
    generator_state = None if generator is None else array_of(generator.state)
    try:
        yield
    finally:
        for found, state in own:
            found.restore(state)
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        if eager is not None:
            eager.setstate(eager_state)
        global_state.set_global_attribute(_SEED_GENERATOR, generator)
        if generator_state is not None:
            generator.state.assign(generator_state)


def generators_of(model: keras.Model) -> list[Any]:
    """Return the generators that code of the user's in a model keeps as attributes, or uses."""
    kept = [value for part in _user_objects(model) for value in vars(part).values() if is_generator(value)]
    used = (*of_call(model).generators, *of_loss(model).generators)
    return [*kept, *used, *(part for part in _user_objects(model) if isinstance(part, FunctionType))]


def draws_numbers(model: keras.Model) -> bool:
    """Whether code of the user's in a model is seen to draw random numbers, from whatever generator."""
    if generators_within(*generators_of(model)):
        return True
    objects = _user_objects(model)
    functions = [part for part in objects if isinstance(part, FunctionType)]
    for kind in {base for part in objects for base in type(part).__mro__ if not _of_keras(base)}:
        functions += [value for value in vars(kind).values() if isinstance(value, FunctionType)]
    return any(_names_random(function.__code__, function.__globals__) for function in functions)


def _user_objects(model: keras.Model) -> list[Any]:
    """Return the model, its layers and its loss as far as the user has written their classes or functions."""
    parts = [model, *model._flatten_layers(include_self=False), getattr(model, "loss", None)]
    return [part for part in parts if hasattr(part, "__dict__") and not _of_keras(part)]


def _of_keras(thing: Any) -> bool:
    kind = thing if isinstance(thing, type | FunctionType) else type(thing)
    return kind in (object, str) or kind.__module__.partition(".")[0] in ("keras", "keras_hub", "tensorflow")


def _names_random(code: CodeType, names: Mapping[str, Any]) -> bool:
    for name in code.co_names:
        used = names.get(name)
        if isinstance(used, BuiltinMethodType):  # of `from random import gauss`
            used = used.__self__
        if "random" in name or "rng" in name or is_generator(used):
            return True
    return any(_names_random(inner, names) for inner in code.co_consts if isinstance(inner, CodeType))


@contextmanager
def tensorflow_seed_kept(*roots: Any) -> Iterator[None]:
    """Restore on leaving what `tf.random.set_seed` replaces, and all that `global_states_kept` does."""
    eager: Any = context.context()
    with global_states_kept(*roots):
        seed, rng = getattr(eager, "_seed", None), getattr(eager, "_rng", None)
        try:
            yield
        finally:
            eager._seed, eager._rng = seed, rng
