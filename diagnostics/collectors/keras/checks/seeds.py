"""Keeps the seed of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from diagnostics.collectors.keras.internals import context
from diagnostics.collectors.keras.state import global_states_kept


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
