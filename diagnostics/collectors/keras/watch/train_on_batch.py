"""Keeps rows of the batches that `train_on_batch` is given, and counts the calls that train nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.batch import take_images, take_rows
from diagnostics.collectors.shared.flipped_targets import ImageTargets
from diagnostics.collectors.shared.learnability import KeptRows
from diagnostics.collectors.shared.repeated_rows import RowMemory
from diagnostics.facts.calls import FrozenCalls
from diagnostics.facts.course import RowLedger
from diagnostics.facts.loss_contracts import LossKind

from .sampled_rows import SampledRows

LOOKED_AT, EVERY = 64, 16  # calls of a model; after the first, one in so many
LEAST = 20  # calls; a model may be frozen for the first few


class TrainOnBatchRows:
    """The batches of one optimizer. What is kept does not grow with the run.

    Attributes:
        images: with their masks, boxes or points.
    """

    def __init__(self) -> None:
        self._drawn, self._memory, self._weighted = SampledRows(), RowMemory(), False
        self.images = ImageTargets()

    def take(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, *_: Any, **__: Any
    ) -> None:
        """Take the arguments of a call; with weights the loss is another one, and nothing is kept from then on."""
        take_images(self.images, (x, y))
        self._weighted = self._weighted or sample_weight is not None or bool(class_weight)
        if self._weighted or y is None:
            return
        self._drawn.take((x, y))
        take_rows(self._memory, (x, y))

    def facts(self, kind: LossKind, num_classes: int | None) -> tuple[KeptRows | None, RowLedger | None]:
        """Return rows of the run, and how the targets of those that came again differ.

        The latter only with the former, which tell whether the model has learned: where a policy is trained, each
        state comes with other actions.

        Args:
            kind: of the loss.
            num_classes: that it tells apart; None where its targets name no classes.
        """
        rows = None if self._weighted else self._drawn.rows(kind, num_classes)
        return rows, None if rows is None else self._memory.facts()


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
