"""Keeps rows of the batches that `train_on_batch` is given, with their targets."""

from __future__ import annotations

from typing import Any

from diagnostics.collectors.keras.batch import take_rows
from diagnostics.collectors.shared.learnability import KeptRows
from diagnostics.collectors.shared.repeated_rows import RowMemory
from diagnostics.facts.course import RowLedger
from diagnostics.facts.loss_contracts import LossKind

from .sampled_rows import SampledRows


class TrainOnBatchRows:
    """The batches of one optimizer. What is kept does not grow with the run."""

    def __init__(self) -> None:
        self._drawn, self._memory, self._weighted = SampledRows(), RowMemory(), False

    def take(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, *_: Any, **__: Any
    ) -> None:
        """Take the arguments of a call; with weights the loss is another one, and nothing is kept from then on."""
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
