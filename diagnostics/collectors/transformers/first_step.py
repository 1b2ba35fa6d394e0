"""The pipeline of a Trainer's first step, as recorded, where its code must not be called separately."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from transformers import Trainer

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.activations import COSINE
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.data import dataset_facts
from diagnostics.collectors.pytorch.discover.first_step_pipeline import (
    LARGEST_OUTPUT,
    NOTHING,
    FirstPass,
    FirstStepPipeline,
    Given,
)
from diagnostics.collectors.pytorch.discover.loss_calls import LossRecorder, RecordedLoss
from diagnostics.collectors.pytorch.loader_rows import SECONDS_COMPARING
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors
from diagnostics.collectors.shared.dataset_rows import sample_rows
from diagnostics.collectors.shared.loss_match import AGREEMENT
from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.collectors.shared.split_overlap import compared_rows, tokens_of_rows
from diagnostics.facts.pipeline import Fact

from .arguments import monitor_facts, trainer_workers
from .call_safety import is_overridden, objection_to_metric, objection_to_rows
from .pipeline import TrainerPipeline


class TrainerStepObserver:
    """Records the first `training_step`: the model's inputs and outputs, and the loss.

    Args:
        trainer: the one that trains.
        inputs: what `training_step` was given.
        why: the reason why nothing else is called.
        deliver: called with the pipeline of the step.
    """

    def __init__(
        self, trainer: Trainer, inputs: Any, *, why: str, deliver: Callable[[TrainerStepPipeline], object]
    ) -> None:
        self._trainer, self._why, self._deliver = trainer, why, deliver
        self._batch = inputs if isinstance(inputs, Mapping) else None
        self._calls, thread = 0, threading.get_ident()
        self._seen = FirstPass(NOTHING, batch=self._batch)
        self._heard: list[RecordedLoss] = []
        self._losses = LossRecorder(lambda call: None, FaultGuard())
        compiled = hasattr(trainer.model_wrapped, "_orig_mod")  # a hook would have it compiled again
        self._hook: Any = None
        if not compiled:
            self._losses.open(lambda: threading.get_ident() == thread)
        if not compiled and isinstance(trainer.model, nn.Module):
            self._hook = trainer.model.register_forward_hook(self._called, with_kwargs=True)

    def close(self) -> None:
        """Remove the hooks."""
        self._heard = list(self._losses.heard)
        self._losses.close()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def done(self, loss: Any) -> None:
        """Record the loss, and deliver the step."""
        if isinstance(loss, Tensor) and loss.numel() == 1:
            self._seen.loss = float(loss.detach())
            self._seen.call = self._of_cosines(self._seen.loss)
        self._deliver(TrainerStepPipeline(self._trainer, self._seen, self._why))

    def _of_cosines(self, loss: float) -> RecordedLoss | None:
        """Return the only call of a loss in the step, if it got cosines and gave the whole loss."""
        call = self._heard[0] if len(self._heard) == 1 else None
        if call is None or call.made_by != COSINE or call.value is None:
            return None
        return call if math.isclose(float(call.value), loss, rel_tol=AGREEMENT) else None

    def _called(self, model: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        with contextlib.suppress(Exception):  # a fault of ours only loses facts
            self._calls += 1
            seen = self._seen
            if self._calls > 1:  # as for a preference loss: which call the loss belongs to is not known
                seen.prediction, seen.is_output = None, False
                return
            seen.called_with = Given.of(dict((*named_tensors(args), *named_tensors(kwargs))))
            prediction = prediction_in(output)
            if prediction is not None and prediction.numel() <= LARGEST_OUTPUT:
                seen.prediction, seen.is_output = prediction.detach(), True


class TrainerStepPipeline(FirstStepPipeline):
    """A `Pipeline` of a Trainer's first step. Only script code without side effects is called.

    Args:
        trainer: the one that trains.
        seen: its first pass.
        why: the reason why nothing else was called.
    """

    def __init__(self, trainer: Trainer, seen: FirstPass, why: str) -> None:
        super().__init__(trainer.model, [] if trainer.optimizer is None else [trainer.optimizer], seen)
        self.trainer = self._trainer = trainer
        self.not_offered = {**FirstStepPipeline.not_offered, "overfit": f"no copy is trained: {why}"}
        self._known = TrainerPipeline(trainer)
        self.name = f"the first step of {self._known.name}"

    @property
    def examined_batch(self) -> Any:
        """The batch of the step; None if it is not known."""
        return self.seen.batch

    def replaces_loss(self) -> bool:
        """See `TrainerPipeline.replaces_loss`."""
        return self._known.replaces_loss()

    def own_classes(self) -> None:
        """See `TrainerPipeline.own_classes`: the loss of a recorded step was not heard."""
        return None

    def data_sources(self) -> tuple[Any, ...]:
        """See `Pipeline.data_sources`."""
        return self._known.data_sources()

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`."""
        model = self._known.model_facts()
        yield model
        dataset = self._trainer.train_dataset
        why = objection_to_rows(dataset)
        if why is None and isinstance(dataset, Mapping):
            why = "the train_dataset is a dict of datasets"
        own = is_overridden(self._trainer, "get_train_dataloader", "_get_dataloader")
        if why is None and own is not None:
            why = f"{type(self._trainer).__name__} has its own {own}"
        if dataset is None or why is not None:
            raise CannotJudge(f"no rows were read: {why or 'there is no train_dataset'}")
        if (workers := trainer_workers(self._trainer)) is not None:
            yield workers
        with random_states_kept(self._trainer):
            facts = dataset_facts(
                sample_rows(dataset),
                columns=self._known.known_columns(),
                pad_token_id=model.pad_token_id,
                weighted_sampling=None if is_overridden(self._trainer, "_get_train_sampler") else False,
                shuffled=True,
            )
            self._read = facts
            yield facts
            evaluation = self._trainer.eval_dataset
            for split in evaluation.values() if isinstance(evaluation, dict) else (evaluation,):
                if split is not None and objection_to_rows(split) is None:
                    yield from compared_rows(dataset, split, SECONDS_COMPARING)
                    if (tokens := tokens_of_rows(dataset, split, SECONDS_COMPARING)) is not None:
                        yield tokens

    def batch(self) -> Iterator[Fact]:
        """See `Pipeline.batch`."""
        if not self.seen.called_with.inputs:
            raise CannotJudge("no call of the model with a batch was seen")
        yield from super().batch()

    def forward(self) -> Iterator[Fact]:
        """See `Pipeline.forward`."""
        if self._trainer.args.gradient_accumulation_steps > 1:  # the loss is divided by some number
            self.seen.loss = None
        yield from super().forward()

    def evaluation(self) -> Iterator[Fact]:
        """See `Pipeline.evaluation`."""
        if (monitors := monitor_facts(self._trainer)) is not None:
            yield monitors
        if (why := objection_to_metric(self._trainer)) is not None:
            raise CannotJudge(f"the metric was not called: {why}")
        with random_states_kept(self._trainer):
            yield self._known.ask_metric(self._target, self.recognised.num_classes)
