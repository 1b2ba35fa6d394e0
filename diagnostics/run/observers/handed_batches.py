"""Examines a Keras model with the first batch that its `train_on_batch` is given, and keeps rows of the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.calls import FrozenCalls
from diagnostics.report.report import Report
from diagnostics.run.looks import of_keras
from diagnostics.run.second_look import Look

from .training import Training, Trainings

if TYPE_CHECKING:
    from diagnostics.collectors.keras.watch.handed_rows import HandedRows
    from diagnostics.facts.pipeline import LossKind, ModelFacts

TRIES = 3  # after which a model that has no weights yet is not asked again; most make them in the first step


class HandedBatches:
    """The examinations of a script's `train_on_batch`, joined to the trainings that are seen by their optimizers.

    Args:
        trainings: of the script.
        fitted: whether a model was fitted, and so examined.
    """

    def __init__(self, trainings: Trainings, fitted: Callable[[Any], bool]) -> None:
        self._all, self._fitted = trainings, fitted
        self._waiting: IdentityMap[Any, Look] = IdentityMap()  # for their training to begin, within a graph
        self._reports: IdentityMap[Any, Report | None] = IdentityMap()  # by optimizer; None: there is none
        self._tries: IdentityMap[Any, int] = IdentityMap()
        self._trainings: IdentityMap[Any, Training] = IdentityMap()
        self._rows: IdentityMap[Any, HandedRows] = IdentityMap()  # by optimizer
        self._trained: IdentityMap[Any, tuple[tuple[LossKind, int | None], ModelFacts]] = IdentityMap()
        self._frozen: Any = None  # of Keras, which is not imported before the script does

    def began(self, optimizer: Any, training: Training) -> None:
        """Take the training of an optimizer, which may be examined before or after."""
        self._trainings[optimizer] = training
        training.examined = self._reports.get(optimizer)
        look = self._waiting.pop(optimizer, None)
        self._all.keep(training, lambda: look)

    def around(self, train: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `train_on_batch` that examines the model first, once, as soon as it has weights."""

        def observed(model: Any, *arguments: Any, **options: Any) -> Any:
            self._all.guard.attempt(self._count, model)
            optimizer = getattr(model, "optimizer", None)
            if optimizer is not None and not self._fitted(model):
                if optimizer not in self._reports:
                    self._all.guard.attempt(self._examine, model, optimizer, arguments, options)
                self._all.guard.attempt(self._take, optimizer, arguments, options)
            return train(model, *arguments, **options)

        return observed

    def frozen(self) -> tuple[FrozenCalls, ...]:
        """Return the calls of models that have nothing to train."""
        return () if self._frozen is None else tuple(self._frozen.facts())

    def keep_rows(self) -> None:
        """Give each training of one kind of loss the rows that it was handed, to compare its course with."""
        for optimizer, rows in self._rows.items():
            training = self._trainings.get(optimizer)
            trained = self._trained.get(optimizer)
            if training is not None and training.rows is None and trained is not None:
                loss, model = trained
                training.rows, repeated = rows.facts(*loss)
                training.beside = () if repeated is None else (repeated, model)

    def _take(self, optimizer: Any, arguments: Any, options: Any) -> None:
        from diagnostics.collectors.keras.watch.handed_rows import HandedRows

        if optimizer not in self._rows:
            self._rows[optimizer] = HandedRows()
        self._rows[optimizer].take(*arguments, **options)

    def _count(self, model: Any) -> None:
        from diagnostics.collectors.keras.discover.frozen_models import FrozenModels

        self._frozen = self._frozen or FrozenModels()
        self._frozen.called(model)

    def _examine(self, model: Any, optimizer: Any, arguments: Any, options: Any) -> None:
        from diagnostics.api.walk import Walk
        from diagnostics.collectors.keras.examine.first_batches.tf_step import handed_batch
        from diagnostics.collectors.keras.model import describe_model

        tries = self._tries[optimizer] = self._tries.get(optimizer, 0) + 1
        pipeline = handed_batch(model, *arguments, **options)
        if pipeline is not None or tries == TRIES:
            self._reports[optimizer] = None
        if pipeline is None:
            return
        report = self._reports[optimizer] = Walk(pipeline).report()
        if pipeline.plain_loss is not None:
            self._trained[optimizer] = pipeline.plain_loss, describe_model(model)
        training = self._trainings.get(optimizer)
        if training is not None:
            training.examined = report
            self._all.keep(training, partial(of_keras, model, pipeline))
        elif self._all.looks_again and (look := self._all.guard.attempt(of_keras, model, pipeline)) is not None:
            self._waiting[optimizer] = look
        self._all.on_examined(report)
