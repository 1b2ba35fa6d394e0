"""Puts back every global state that looking at a Keras pipeline on TensorFlow could move."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
from keras.src.backend.common import global_state
from tensorflow.python.eager import context

from .own_generators import generators_within

_SEED_GENERATOR = "global_seed_generator"
_NAME_COUNTERS = "object_name_uids"


@contextmanager
def global_states_kept(*roots: Any) -> Iterator[None]:
    """Restore on leaving: Python's, NumPy's, TensorFlow's and Keras' generators, and Keras' counters of names.

    Keras numbers what it makes (`dense_3`), and draws the seeds of new layers from Python's generator.

    Args:
        roots: data that may carry generators of its own; they are restored, too.
    """
    own = [(generator, generator.state()) for generator in generators_within(*roots)]
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    eager = getattr(context.context(), "_rng", None)  # there once a seed was set
    eager_state = eager.getstate() if eager is not None else None
    generator: Any = global_state.get_global_attribute(_SEED_GENERATOR)
    generator_state = None if generator is None else generator.state.numpy()
    counters = dict(global_state.get_global_attribute(_NAME_COUNTERS) or {})
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
        now = global_state.get_global_attribute(_NAME_COUNTERS)
        if now is not None:
            now.clear()
            now.update(counters)


@contextmanager
def own_loss(model: keras.Model) -> Iterator[None]:
    """Let the model pair its losses with its outputs anew, and forget that on leaving.

    The pairing is made once, for the first batch; another structure of batches would be refused afterwards.
    """
    pairing = getattr(model, "_compile_loss", None)
    if pairing is None:
        yield
        return
    fresh = type(pairing)(pairing._user_loss, pairing._user_loss_weights, pairing.reduction, pairing.output_names)
    vars(model)["_compile_loss"] = fresh  # past Keras' tracking of attributes
    try:
        yield
    finally:
        vars(model)["_compile_loss"] = pairing
