"""Finds Keras models of earlier trainings that variables in the frames of a crash keep alive.

A `History`, which `fit` returns, references its model, and so its weights and its optimizer's state. A search over
settings that collects one for each setting keeps all of its models, and `clear_session` cannot free them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diagnostics.facts.crash.memory import KeptModels

from ..frames import Crash, Recogniser
from ..model_memory import is_keras_model, keras_present
from ..out_of_memory import RECOGNISERS as MEMORY

FEWEST = 2  # models, beside the one in training


def _kept_models(crash: Crash) -> KeptModels | None:
    if not crash.facts.live or not any(recognise(Crash(crash.facts)) for recognise in MEMORY):
        return None
    in_training = {id(weight) for model in _in_training(crash) for weight in model.weights}
    found = [
        kept for name, parts in _collections(crash) if (kept := _measured(name, parts, in_training)) is not None
    ]
    return max(found, key=lambda kept: kept.size, default=None)


def _in_training(crash: Crash) -> Iterator[Any]:
    """Yield the models that are called in the crash, and those that the user's frames name directly."""
    for variables in crash.inward():
        yield from (value for value in variables.values() if is_keras_model(value))


def _collections(crash: Crash) -> Iterator[tuple[str, list[Any]]]:
    """Yield what the user's lists, tuples and dicts hold, by the name of the variable."""
    for frame, variables in zip(crash.facts.frames, crash.variables, strict=False):
        for name, value in variables.items() if frame.yours else ():
            if isinstance(value, Mapping):
                yield name, list(value.values())
            elif isinstance(value, list | tuple):
                yield name, list(value)


def _measured(name: str, parts: list[Any], in_training: set[int]) -> KeptModels | None:
    """Add up what the compiled models hold that are not in training; None if they are few."""
    by_history = any(_is_history(part) for part in parts)
    reached = [part.model if _is_history(part) else part for part in parts]
    models = {id(model): model for model in reached if is_keras_model(model)}
    sizes = [
        keras_present(model)
        for model in models.values()
        if getattr(model, "optimizer", None) is not None
        and not in_training.intersection(id(weight) for weight in model.weights)
    ]
    return KeptModels(name, len(sizes), min(sizes), by_history) if len(sizes) >= FEWEST else None


def _is_history(value: Any) -> bool:
    return type(value).__name__ == "History" and hasattr(value, "history") and hasattr(value, "model")


RECOGNISERS: tuple[Recogniser, ...] = (_kept_models,)
