"""Calls a function of TensorFlow or Keras on copies of its arguments, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from diagnostics.collectors.checks.calls import SEED, Arguments, Called, named_parts
from diagnostics.collectors.keras.state import global_states_kept
from diagnostics.collectors.shared.reread import seed_globals


class TensorFlowCaller:
    """See `Caller`."""

    name = "tensorflow"

    def of_array(self, array: Any) -> Any:
        """See `Caller`."""
        return tf.constant(array)

    def widened(self, value: Any) -> Any:
        """See `Caller`."""
        return tf.cast(value, tf.float64) if tf.is_tensor(value) and value.dtype.is_floating else value

    def moved(self, value: Any, rng: np.random.Generator, by: float) -> Any:
        """See `Caller`."""
        if _is_float(value):
            return value + tf.cast(by * rng.standard_normal(tuple(value.shape)), value.dtype)
        return value

    @contextmanager
    def kept(self, *functions: Any) -> Iterator[None]:
        """See `Caller`."""
        with global_states_kept(*functions):
            yield

    def call(self, function: Callable[..., Any], given: Arguments, gradients: bool, watched: bool) -> Called:
        """See `Caller`."""
        handed = [tf.identity(value) if tf.is_tensor(value) else value for value in given.values]
        wanted = {name: v for name, v in zip(given.names, handed, strict=True) if _is_float(v)}
        seed_globals(SEED)
        try:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(list(wanted.values()))
                parts = named_parts(given.call(function, handed))
                total = _weighted_sum(parts)
        except Exception as error:
            return Called(error=error)
        if not gradients:
            return Called(parts)
        if total is None or not wanted:
            return Called(parts, dict.fromkeys(wanted))
        found = tape.gradient(total, list(wanted.values()))
        found = [None if one is None else tf.convert_to_tensor(one) for one in found]
        return Called(parts, dict(zip(wanted, found, strict=True)))


def _is_float(value: Any) -> bool:
    return bool(tf.is_tensor(value) and value.dtype.is_floating)


def _weighted_sum(parts: dict[str, Any]) -> Any:
    """Add up all results, with weights that depend on their shapes alone."""
    total = None
    for output in parts.values():
        if _is_float(output):
            weights = np.random.default_rng(SEED).standard_normal(tuple(output.shape))
            part = tf.reduce_sum(tf.cast(output, tf.float64) * weights)
            total = part if total is None else total + part
    return total
