"""The pipeline of a PyTorch model, its data and its loss. Everything runs on a copy."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, default_collate

from diagnostics.collectors.isolation.iterators import iterators_kept
from diagnostics.collectors.pytorch.activations import (
    activations_seen,
    function_before,
    last_activation,
    last_function,
    output_facts,
)
from diagnostics.collectors.pytorch.batch import (
    call_loss,
    call_model,
    checked_loss,
    describe_source,
    is_single,
    loss_in,
    prediction_if_any,
    prediction_in,
    some_rows,
    split_batch,
    with_inputs,
)
from diagnostics.collectors.pytorch.data import (
    batch_indices,
    collate_batch,
    dataset_facts,
    first_labels,
    is_shuffled,
    rows_at,
    sample_loaded_rows,
    sampling_weights,
    to_device,
)
from diagnostics.collectors.pytorch.dependence.measure import PARTS, measure
from diagnostics.collectors.pytorch.dependence.subject import Subject, all_counted
from diagnostics.collectors.pytorch.examine.model_copy import ModelCopy
from diagnostics.collectors.pytorch.examine.overfit import BatchOverfit, TorchSubsets
from diagnostics.collectors.pytorch.examine.reproduce import reproduce
from diagnostics.collectors.pytorch.loss_graph import graph_nodes, loss_graph, with_shapes
from diagnostics.collectors.pytorch.losses import class_axis, ignored_label, is_indexed, recognise_loss
from diagnostics.collectors.pytorch.model import (
    check_runnable,
    describe_model,
    device_of,
    end_token,
    parameter_names,
    several_ranks,
    uncompiled,
)
from diagnostics.collectors.pytorch.new_weights import embedding_rows
from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder, full_rate, like, optimizer_facts, warms_up
from diagnostics.collectors.pytorch.state import kept, random_states_kept
from diagnostics.collectors.pytorch.worker_generators import worker_facts
from diagnostics.collectors.shared.arrays import flat, is_tensor, name_of, target_name, to_array
from diagnostics.collectors.shared.dataset_rows import fresh_iterator, is_iterable_only, private
from diagnostics.collectors.shared.loss_match import Recognised, at_unit_scale, is_far_above_chance
from diagnostics.collectors.shared.pipeline import CannotJudge, Pipeline, StageFailed, users_code
from diagnostics.collectors.shared.reread import MOST_ROWS, Source, deep_copy, reread, seed_globals
from diagnostics.collectors.shared.split_overlap import compared_rows
from diagnostics.facts.data import RereadFacts
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.layers import LayerFacts
from diagnostics.facts.pipeline import BatchFacts, Fact, GradientFacts, LossFacts, ModelFacts, OutputFacts

SECONDS_ASKING = 2.0  # about parts of a batch


class PyTorchPipeline(Pipeline):
    """`examine(model, loader, loss_fn, optimizer)`.

    Args:
        model: the module to train.
        loader: a `DataLoader`, or anything that can be iterated again and yields batches. A batch is a pair
            (inputs, target), a longer tuple with the target last, a dict, or one tensor.
        loss_fn: called as ``loss_fn(prediction, target)``; None if the model returns its loss itself.
        optimizer: its learning rates and parameters are read; it is never stepped.
        evaluation: a `DataLoader` over the evaluation rows, to be compared with the training rows.
    """

    not_offered: Mapping[str, str] = {"evaluation": "no metric was given"}
    batch_is_needed = True  # otherwise the caller is told to pass other data

    def __init__(
        self, model: nn.Module, loader: Any, loss_fn: Any = None, optimizer: Any = None, evaluation: Any = None
    ) -> None:
        # A compiled model would be compiled again for every copy; the module inside has the same parameters.
        self.model = uncompiled(model)
        self.loader = loader
        self.loss_fn = loss_fn
        self.optimizer = optimizer
        self.evaluation_data = evaluation
        self.name = f"{type(model).__name__} with {describe_source(loader)}"
        self._batch: Any = None
        self._changes_when_read = False
        self._target: Any = None
        self._copy = ModelCopy(self.model, self.copied_along, loss_fn)
        self._loss: Tensor | None = None
        self._prediction: Tensor | None = None
        self._recognised = Recognised()
        self._moves_on: str | None = None  # what the script would see of every further pass

    # --- what a Trainer does otherwise ----------------------------------------------------------------------

    def take_batch(self, number: int = 0) -> Any:
        """Build one batch, the first or a later one, on the model's device."""
        # A loader that iterates in a way of its own may do more to a batch than collate it.
        if isinstance(self.loader, DataLoader) and type(self.loader).__iter__ is DataLoader.__iter__:
            batch = collate_batch(self.loader, number, self.rows(self.loader.dataset))
        else:
            with users_code():
                if several_ranks():
                    raise CannotJudge("several processes train together, and the loader could wait for the others")
                batch = next(islice(fresh_iterator(self.loader, "data"), number, None), None)
            if batch is None:
                raise StageFailed("The data yields no batch: it is empty. There is nothing to train on.")
        return to_device(batch, device_of(self.model))

    def compute(self, model: nn.Module, batch: Any) -> tuple[Any, Any]:
        """Return loss and outputs of one batch, as the training loop would compute them."""
        outputs = self.predict(model, batch)
        if outputs is None:
            raise StageFailed("The model returned None: its forward ends without a return.")
        if self.loss_fn is None:
            return loss_in(outputs), outputs
        return call_loss(self._copy.loss, outputs, batch), outputs

    def predict(self, model: nn.Module, batch: Any) -> Any:
        """Call the model as the training loop would, with the labels only if it makes its loss itself."""
        return call_model(model, batch, makes_loss=self.loss_fn is None)

    def known_classes(self) -> int | None:
        """Return the number of classes if it is certain before the loss runs: an indexed loss by its type."""
        if not is_indexed(self.loss_fn) or self._prediction is None or not isinstance(self._target, Tensor):
            return None
        axis = class_axis(self._prediction, self._target, likely=1)
        return None if axis is None else self._prediction.shape[axis]

    def model_facts(self) -> ModelFacts:
        """Describe the model as it was handed over."""
        return describe_model(self.model, training=self.model.training, computes_loss=self.loss_fn is None)

    def trial_optimizer(self) -> tuple[float | None, OptimizerBuilder | None, bool | None]:
        """Return the user's full learning rate, how to build such an optimizer for a copy, and if it warms up."""
        if self.optimizer is None:
            return None, None, None
        return full_rate(self.optimizer), like(self.optimizer, self.model), warms_up(self.optimizer)

    def make_loader(self) -> DataLoader[Any]:
        """Return what shows dataset, collator and sampler."""
        return self.loader

    def reads_in_fresh_workers(self) -> bool:
        """Whether training reads rows in processes that start over with each epoch."""
        return self.loader.num_workers > 0 and not self.loader.persistent_workers

    def reread(self) -> RereadFacts:
        """Read a batch twice, and note whether the dataset has to be protected from being read."""
        facts = reread_batch(self.make_loader, self.reads_in_fresh_workers())
        self._changes_when_read = facts.unjudged is None and facts.culprit == "dataset"
        return facts

    def rows(self, dataset: Any) -> Any:
        """Return what rows can be read from without any trace in the user's own dataset."""
        return deep_copy(dataset) if self._changes_when_read else private(dataset)

    # --- the stages -----------------------------------------------------------------------------------------

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """See `Pipeline.untouched`."""
        called = [*self.model.modules(), self.loss_fn]
        with kept(self.roots(), self.model, self.loss_fn), iterators_kept(*called) as self._moves_on:
            yield

    def roots(self) -> tuple[Any, ...]:
        """Return what may own random generators."""
        return self.loader, self.model, self.loss_fn, self.evaluation_data

    def data_sources(self) -> tuple[Any, ...]:
        """See `Pipeline.data_sources`."""
        return getattr(self.loader, "collate_fn", None), getattr(self.loader, "dataset", self.loader)

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`."""
        yield self.model_facts()
        if not isinstance(self.loader, DataLoader):
            raise CannotJudge(f"{describe_source(self.loader)} holds batches; single rows are not available")
        if (workers := worker_facts(self.loader)) is not None:
            yield workers
        yield self.reread()
        sample = sample_loaded_rows(self.loader, self.rows(self.loader.dataset))
        shuffled, weights = is_shuffled(self.loader), sampling_weights(self.loader)
        yield dataset_facts(
            sample,
            weighted_sampling=weights is not None,
            sampling_weights=weights,
            shuffled=shuffled,
            first_batches=(
                first_labels(self.rows(self.loader.dataset), self.loader.batch_size) if shuffled is False else ()
            ),
        )
        if isinstance(self.evaluation_data, DataLoader):
            yield from compared_rows(self.rows(self.loader.dataset), self.rows(self.evaluation_data.dataset))

    def batch(self) -> Iterator[Fact]:
        """See `Pipeline.batch`."""
        try:
            self._batch = self.take_batch()
        except CannotJudge as reason:
            if not self.batch_is_needed:
                raise
            raise StageFailed(f"No batch was taken: {reason}.") from None
        inputs, self._target = split_batch(self._batch)
        inputs = flat(inputs)
        arrays = {name: array for name, value in inputs.items() if (array := to_array(value)) is not None}
        sized = [value for value in (self._target, *inputs.values()) if is_tensor(value) and value.ndim]
        labels = None if self._target is None else to_array(self._target)
        yield BatchFacts(
            size=1 if is_single(self._target) else int(sized[0].shape[0]) if sized else 0,
            inputs=arrays,
            labels=labels if labels is None else np.atleast_1d(labels),
            labels_name=target_name(self._batch),
            ignore_index=ignored_label(self.loss_fn),
        )
        if (end := end_token(self.model)) is not None:
            yield end
        if (added := embedding_rows.added_to(self.model)) is not None:
            yield added

    def forward(self) -> Iterator[Fact]:
        """See `Pipeline.forward`."""
        if self._batch is None:
            raise CannotJudge("no batch was taken")
        check_runnable(self.model)
        model = self._copy.fresh().train()
        with torch.no_grad():
            self._prediction = prediction_if_any(self.predict, model, self._batch)
        classes = self.known_classes()
        if classes is not None and self._prediction is not None:
            yield self._output_facts(classes)  # before the loss runs: a label out of range can end a GPU
        with users_code(), activations_seen(model) as seen:
            loss, outputs = self.compute(model, self._batch)
        if seen:
            yield LayerFacts(tuple(seen))
        self._loss = checked_loss(loss, outputs, self.loss_fn)
        self._prediction = prediction_in(outputs)
        value = float(self._loss.detach())
        self._recognised = self.recognised(value)
        yield self._output_facts(classes or self._recognised.num_classes)
        yield LossFacts(
            value=value,
            kind=self._recognised.kind,
            constant_baseline_loss=self._recognised.floor,
            class_weights=self._class_weights(),
            weights=self._recognised.weights,
            reads=self._recognised.reads,
            broadcast=self._recognised.broadcast,
            name=name_of(self.loss_fn),
            non_finite_rows=None if math.isfinite(value) else self._non_finite_rows(model),
            scaled=self._scaled_loss(model, value),
            evaluated=self._evaluated_loss(model, value),
        )
        yield with_shapes(loss_graph(graph_nodes(self._loss)), self._prediction, self._target)

    def backward(self) -> Iterator[Fact]:
        """See `Pipeline.backward`."""
        model = self._copy.latest
        if model is None or self._loss is None:
            raise CannotJudge("the model was not run")
        facts = _gradient_facts(model, self._loss)
        yield facts
        if not facts.num_trainable or not self._loss.requires_grad or self._moves_on is not None:
            return
        with users_code():
            yield self._dependence(model)

    def optimizer_step(self) -> Iterator[Fact]:
        """See `Pipeline.optimizer_step`."""
        if self.optimizer is None:
            raise CannotJudge("no optimizer was given")
        yield optimizer_facts(self.optimizer, self.model)

    def overfit(self) -> Iterator[Fact]:
        """See `Pipeline.overfit`."""
        trials = self.trials()
        with users_code():
            yield from trials()

    def trials(self) -> Callable[[], Iterator[Fact]]:
        """Return what trains copies on the batch, with the optimizer's settings as they are now."""
        self._check_repeatable()
        self._loss = None  # its graph holds the first forward's activations
        trials = BatchOverfit(
            self._batch,
            self._recognised,
            fresh=self._copy.fresh,
            compute=self.compute,
            predict=self.predict,
            take_batch=self.take_batch,
        )
        trainable = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        return partial(trials.facts, *self.trial_optimizer(), trainable, seconds=self.overfit_seconds)

    def subsets(self, classes: frozenset[int]) -> TorchSubsets:
        """See `Pipeline.subsets`."""
        self._check_repeatable()
        self._loss = None  # its graph holds the first forward's activations
        rate, build, _ = self.trial_optimizer()
        return TorchSubsets(
            self._batch,
            self._recognised,
            self.loss_fn,
            classes,
            model=self.model,
            fresh=self._copy.fresh,
            compute=self.compute,
            predict=self.predict,
            take_batch=self.take_batch,
            rate=rate,
            build=build,
        )

    def reproduction(self) -> Iterator[Fact]:
        """See `Pipeline.reproduction`."""
        if self._moves_on is not None:
            raise CannotJudge(f"running the model again could be noticed: {self._moves_on}")
        with users_code():
            yield reproduce(
                self.roots(),
                take_batch=self.take_batch,
                fresh_model=self._copy.fresh,
                compute=lambda model, batch: checked_loss(*self.compute(model, batch), self.loss_fn),
            )

    def _check_repeatable(self) -> None:
        """Raise `CannotJudge` unless copies of the model may be trained."""
        if self._copy.latest is None:
            raise CannotJudge("the model was not run")
        if self._moves_on is not None:
            raise CannotJudge(f"running the model again could be noticed: {self._moves_on}")

    # --- parts ----------------------------------------------------------------------------------------------

    def _class_weights(self) -> bool | None:
        """Say whether the loss weighs classes; a model of transformers that makes its own loss does not."""
        if type(self.model).__module__.startswith("transformers.") and self.model_facts().computes_loss:
            return False
        return self._recognised.class_weights

    def copied_along(self) -> Any:
        """Return what computes the loss, to be copied together with the model: it may hold the model itself."""
        return self.loss_fn

    def recognised(self, value: float) -> Recognised:
        """Say which loss of the prediction and the target has this value."""
        return recognise_loss(value, self._prediction, self._target, self.loss_fn, ignored_label(self.loss_fn))

    def _output_facts(self, classes: int | None) -> OutputFacts:
        if self._prediction is None:
            return OutputFacts((), classes)
        last = last_function(self._prediction) or last_activation(self.model)
        facts = output_facts(self._prediction, self._target, classes, last)
        return dataclasses.replace(facts, applied_to=function_before(self._prediction))

    def _non_finite_rows(self, model: nn.Module) -> tuple[int, ...] | None:
        """Compute the loss of each example alone, to see which of them are to blame.

        Args:
            model: a copy, in training mode; run in evaluation mode.

        Returns:
            Their numbers; None for a loss that needs the whole batch.
        """
        size = self._prediction.shape[0] if self._prediction is not None and self._prediction.ndim else 0
        rows = []
        try:
            with torch.no_grad():
                for row in range(size):
                    loss, _ = self.compute(model.eval(), some_rows(self._batch, slice(row, row + 1), size))
                    if not math.isfinite(float(loss)):
                        rows.append(row)
        except Exception:
            return None
        finally:
            model.train()
        return tuple(rows)

    def _scaled_loss(self, model: nn.Module, value: float) -> float | None:
        """Compute the loss again with floating-point inputs at unit scale; None where the loss is near chance."""
        if not is_far_above_chance(value, self._recognised.num_classes):
            return None
        given = {
            name: torch.from_numpy(at_unit_scale(array)).to(one)
            for name, one in flat(split_batch(self._batch)[0]).items()
            if isinstance(one, Tensor) and one.is_floating_point() and (array := to_array(one)) is not None
        }
        if not given:
            return None
        try:
            with torch.no_grad(), random_states_kept(self.model):
                return float(self.compute(model, with_inputs(self._batch, given))[0])
        except Exception:  # whatever the user's code raises at values that it was never given
            return None

    def _evaluated_loss(self, model: nn.Module, value: float) -> float | None:
        """Compute the loss again in evaluation mode; None where the loss is near chance."""
        if not is_far_above_chance(value, self._recognised.num_classes):
            return None
        try:
            with torch.no_grad(), random_states_kept(self.model):
                return float(self.compute(model.eval(), self._batch)[0])
        except Exception:  # a model whose evaluation returns something else, as a detector's does
            return None
        finally:
            model.train()

    def _dependence(self, model: nn.Module) -> DependenceFacts:
        """Ask a copy, which was run on the batch, again about parts of it; the copy is used up."""
        parts, target = split_batch(self._batch)
        named = flat(parts)
        inputs = {name: value for name, value in named.items() if isinstance(value, Tensor)}
        if device_of(model).type != "cpu" and not all_counted(inputs):
            return DependenceFacts(why_not=dict.fromkeys(PARTS, "an index out of range can end a GPU"))
        named_apart = not isinstance(self._batch, Mapping) or bool(set(named) & set(parameter_names(model)))
        is_loader = isinstance(self.loader, DataLoader)
        return measure(
            Subject(
                model=model,
                call=lambda copied, given: self.predict(copied, with_inputs(self._batch, given)),
                inputs=inputs,
                tested=frozenset(inputs) if named_apart else frozenset(),
                target=target if isinstance(target, Tensor) else None,
                ignore_index=ignored_label(self.loss_fn),
                batch_first=is_loader and self.loader.collate_fn is default_collate,
                shuffled=is_shuffled(self.loader) if is_loader else None,
                predicts_tokens=self._recognised.kind == "cross_entropy",
                deadline=time.monotonic() + SECONDS_ASKING,
            )
        )


def reread_batch(make_loader: Callable[[], DataLoader[Any]], fresh_workers: bool = False) -> RereadFacts:
    """Read the rows of one batch, and collate them, twice.

    Args:
        make_loader: gives the user's loader, or one made of the user's dataset and collator.
        fresh_workers: whether training reads rows in processes that start over with each epoch.
    """
    try:
        loader = make_loader()
        dataset, together = loader.dataset, loader._auto_collation
        if is_iterable_only(dataset):
            return RereadFacts(unjudged="needs rows that can be read again, not a stream")
        with random_states_kept(loader):
            indices = batch_indices(loader)
            indices = indices[:MOST_ROWS] if together else indices
            if type(dataset) in (list, tuple):  # looking at its rows changes nothing, so only these are copied
                dataset = {index: dataset[index] for index in (indices if together else [indices])}
    except Exception as error:  # another stage meets it, and says so in full
        return RereadFacts(unjudged=f"needs rows to read; asking for them raised {type(error).__name__}")
    source = Source(
        dataset=dataset,
        collate=loader.collate_fn,
        read=lambda rows: rows_at(rows, indices, together),
        seed=seed_globals,
        fresh_workers=fresh_workers,
    )
    with random_states_kept(loader):
        return reread(source)


def _gradient_facts(model: nn.Module, loss: Tensor) -> GradientFacts:
    """Run the backward pass of a loss, and describe the gradients of a model that has none yet."""
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    total = sum(p.numel() for p in trainable.values())
    if not trainable or not loss.requires_grad:
        return GradientFacts(False, {}, {name: p.numel() for name, p in trainable.items()}, total)
    with users_code():
        loss.backward()
    norms = {name: float(p.grad.norm()) for name, p in trainable.items() if p.grad is not None}
    unreached = {name: p.numel() for name, p in trainable.items() if p.grad is None}
    return GradientFacts(bool(norms), norms, unreached, total)
