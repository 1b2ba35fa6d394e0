"""Examines a Keras model with the first batch that its `train_on_batch` is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.report.report import Report

from .looks import of_keras

if TYPE_CHECKING:
    from .observer import Training
    from .second_look import Look

TRIES = 3  # after which a model that has no weights yet is not asked again; most make them in the first step


class HandedBatches:
    """The examinations of a script's `train_on_batch`, joined to the trainings that are seen by their optimizers.

    Args:
        guard: takes the faults.
        on_examined: called with each report.
        fitted: whether a model was fitted, and so examined.
        keep: called with a training and with what takes a second look at it; None where none is wanted.
    """

    def __init__(
        self,
        guard: FaultGuard,
        on_examined: Callable[[Report], object],
        fitted: Callable[[Any], bool],
        keep: Callable[[Training, Look | None], object] | None = None,
    ) -> None:
        self._guard, self._on_examined, self._fitted, self._keep = guard, on_examined, fitted, keep
        self._waiting: IdentityMap[Any, Look] = IdentityMap()  # for their training to begin, within a graph
        self._reports: IdentityMap[Any, Report | None] = IdentityMap()  # by optimizer; None: there is none
        self._tries: IdentityMap[Any, int] = IdentityMap()
        self._trainings: IdentityMap[Any, Training] = IdentityMap()

    def began(self, optimizer: Any, training: Training) -> None:
        """Take the training of an optimizer, which may be examined before or after."""
        self._trainings[optimizer] = training
        training.examined = self._reports.get(optimizer)
        look = self._waiting.pop(optimizer, None)
        if self._keep is not None:
            self._keep(training, look)

    def around(self, train: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `train_on_batch` that examines the model first, once, as soon as it has weights."""

        def observed(model: Any, *arguments: Any, **options: Any) -> Any:
            optimizer = getattr(model, "optimizer", None)
            if optimizer is not None and optimizer not in self._reports and not self._fitted(model):
                self._guard.attempt(self._examine, model, optimizer, arguments, options)
            return train(model, *arguments, **options)

        return observed

    def _examine(self, model: Any, optimizer: Any, arguments: Any, options: Any) -> None:
        from diagnostics.api.examine import walk
        from diagnostics.collectors.keras.examine.tf_step import handed_batch

        tries = self._tries[optimizer] = self._tries.get(optimizer, 0) + 1
        pipeline = handed_batch(model, *arguments, **options)
        if pipeline is not None or tries == TRIES:
            self._reports[optimizer] = None
        if pipeline is None:
            return
        report = self._reports[optimizer] = walk(pipeline)
        training = self._trainings.get(optimizer)
        look = None if self._keep is None else self._guard.attempt(of_keras, model, pipeline)
        if training is not None:
            training.examined = report
        if training is not None and self._keep is not None:
            self._keep(training, look)
        elif look is not None:
            self._waiting[optimizer] = look
        self._on_examined(report)
