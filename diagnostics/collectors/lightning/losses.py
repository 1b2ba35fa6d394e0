"""Tells the loss of an optimizer step from what Lightning hands to its callbacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SEVERAL = "training_step runs several backward passes by itself, and returns no loss"
NONE = "training_step optimizes by itself, and returns no loss"


class StepLosses:
    """The losses of the batches of one optimizer step."""

    def __init__(self) -> None:
        self._of_batches: list[Any] = []
        self._backwards: list[Any] = []  # of the batch that is running, where the module optimizes by itself
        self._steps = 0

    def backward(self, loss: Any) -> None:
        """Take the loss of a backward pass that the module runs itself."""
        self._backwards.append(loss.detach())

    def batch_ends(self, outputs: Any, automatic: bool, accumulated: int) -> str:
        """Take the loss of a batch.

        Args:
            outputs: as `on_train_batch_end` gets them: a dict, with the loss if there is one.
            automatic: whether Lightning runs the backward pass.
            accumulated: batches whose gradients are summed for a step; Lightning has divided the loss by it.

        Returns:
            Why there is none; empty if there is.
        """
        backwards, self._backwards = self._backwards, []
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if automatic:
            if loss is not None:
                self._of_batches.append(loss * accumulated if accumulated > 1 else loss)
            return ""
        if loss is None and len(backwards) == 1:
            loss = backwards[0]
        if loss is None:
            return SEVERAL if backwards else NONE
        self._of_batches.append(loss)
        return ""

    def of_step(self, steps: int, accumulated: int) -> tuple[bool, Any]:
        """Return whether the step is over, and the mean of its losses; None if there is no loss.

        Args:
            steps: optimizer steps so far.
            accumulated: batches after which it is over although no optimizer has stepped.
        """
        if steps == self._steps and len(self._of_batches) < accumulated:
            return False, None
        self._steps = steps
        losses, self._of_batches = self._of_batches, []
        if not losses:
            return True, None
        return True, losses[0] if len(losses) == 1 else sum(losses) / len(losses)


class ValidationLoss:
    """The validation loss among the metrics of a run; of several always the same."""

    def __init__(self) -> None:
        self._name: str | None = None

    def among(self, metrics: Mapping[str, Any]) -> float | None:
        """Return its value; None if there is none."""
        names = [name for name in metrics if _is_validation_loss(name)]
        self._name = self._name or ("val_loss" if "val_loss" in names else next(iter(names), None))
        return float(metrics[self._name]) if self._name is not None and self._name in metrics else None


def _is_validation_loss(name: str) -> bool:
    words = set(re.split(r"[^a-z]+", name.lower()))
    return "loss" in words and bool(words & {"val", "valid", "validation", "eval"})
