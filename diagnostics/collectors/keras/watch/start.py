"""Records what tells one `fit` apart from another run of it: settings, seeds, weights, and the first rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras import internals
from diagnostics.collectors.keras.model import has_parts_weights
from diagnostics.collectors.shared.fingerprint import (
    LAYERS,
    NUMBERS,
    hashes_of_rows,
    hashes_of_weights,
    part_of_rows,
    plain_settings,
    states_of_host,
)
from diagnostics.facts.array import Array
from diagnostics.facts.fingerprint import EARLY, StartFacts

NOT_SET = ("name", "built", "optimizer")  # of a layer or a loss


class FitStart:
    """The start of one `fit`, and the rows of its first steps.

    Args:
        model: compiled.
        optimizer: of the model, without any wrapper; None before `compile`.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        with own_run():
            self._settings = {
                "model": type(model).__name__,
                "loss": _name_of(getattr(model, "loss", None)),
                "precision": getattr(getattr(model, "dtype_policy", None), "name", None),
                "jit_compile": getattr(model, "jit_compile", None),
                **_attributes("loss", getattr(model, "loss", None)),
                **{
                    name: value
                    for layer in getattr(model, "layers", ())[:LAYERS]
                    for name, value in _attributes(f"layer {layer.name}", layer).items()
                },
                **_settings(optimizer),
            }
            self._seeds, self._states = _seeds(), states_of_host()
            variables = model.variables if has_parts_weights(model) else []  # else they are made in the first step
            self._weights = hashes_of_weights({one.path: _part_of(one) for one in variables if np.prod(one.shape)})
        self._rows: dict[int, tuple[str, ...]] = {}

    def take(self, step: int, parts: Sequence[Array]) -> None:
        """Take the batch of a step, if it is one of the first."""
        if step < EARLY and step not in self._rows:
            rows = [part for part in parts if part.ndim and part.size and not part.dtype.hasobject]
            self._rows[step] = hashes_of_rows([part_of_rows(part, part.dtype.kind in "iub") for part in rows])

    def facts(self) -> StartFacts:
        """Return all so far."""
        rows = {step: rows for step, rows in self._rows.items() if rows}
        return StartFacts(self._settings, self._seeds, self._states, self._weights, rows)


def _settings(optimizer: Any) -> dict[str, Any]:
    if optimizer is None:
        return {}
    settings: dict[str, Any] = {"optimizer": type(optimizer).__name__}
    if type(optimizer).__module__.startswith("keras."):  # the method of another may do anything
        config = optimizer.get_config()
        if isinstance(rate := config.get("learning_rate"), dict):
            config["learning_rate"] = f"{rate['class_name']}({rate['config']})"
        settings |= plain_settings({name: value for name, value in config.items() if name != "name"})
    return settings


def _attributes(whose: str, of: Any) -> dict[str, Any]:
    """Return the numbers and strings that an object of Keras holds; its `get_config` may call other code."""
    if not type(of).__module__.startswith("keras."):
        return {}
    plain = plain_settings({name: value for name, value in vars(of).items() if name.isidentifier()})
    return {f"{name} of {whose}": value for name, value in plain.items() if name[0] != "_" and name not in NOT_SET}


def _seeds() -> dict[str, Any]:
    seeds: dict[str, Any] = {}
    if "tensorflow" in sys.modules:
        seeds["seed of TensorFlow"] = internals.context.global_seed()
    if keras.backend.backend() == "torch":
        seeds["seed of torch"] = sys.modules["torch"].initial_seed()
    return seeds


def _part_of(variable: Any) -> Array:
    """Copy some numbers of a variable, spread evenly."""
    flat = keras.ops.reshape(keras.ops.stop_gradient(variable.value), (-1,))
    part: Array = keras.ops.convert_to_numpy(flat[:: max(1, -(-int(np.prod(variable.shape)) // NUMBERS))])
    return part


def _name_of(loss: Any) -> str | None:
    if loss is None or isinstance(loss, str):
        return loss
    return str(getattr(loss, "__name__", type(loss).__name__))
