"""Counts the calls of `train_on_batch` of models that have no trainable weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.calls import FrozenCalls

LOOKED_AT, EVERY = 64, 16  # calls of a model; after the first, one in so many
LEAST = 20  # calls; a model may be frozen for the first few


class FrozenModels:
    """Takes the calls one by one."""

    def __init__(self) -> None:
        self._calls: IdentityMap[Any, int] = IdentityMap()  # of models with weights that were frozen each time
        self._learning: IdentityMap[Any, None] = IdentityMap()
        self._known: IdentityMap[Any, tuple[str, int]] = IdentityMap()

    def called(self, model: Any) -> None:
        """Look at the model of a call."""
        if model in self._learning:
            return
        calls = self._calls.get(model, 0)
        if calls < LOOKED_AT or calls % EVERY == 0:
            if model.trainable_variables or not model.weights:
                self._learning[model] = None
                return
            self._known[model] = model.name, sum(int(np.prod(one.shape)) for one in model.weights)
        self._calls[model] = calls + 1

    def facts(self) -> Iterator[FrozenCalls]:
        """Yield what was called often, and always frozen."""
        for model, calls in self._calls.items():
            if calls >= LEAST and model not in self._learning and model in self._known:
                yield FrozenCalls(self._known[model][0], calls, self._known[model][1])
