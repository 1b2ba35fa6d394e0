"""The pipeline of a loop's first step, as recorded: nothing is run again."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.probe import probes_in
from diagnostics.collectors.pytorch.activations import last_activation, output_facts
from diagnostics.collectors.pytorch.batch import split_batch
from diagnostics.collectors.pytorch.discover import probes
from diagnostics.collectors.pytorch.loader_rows import image_pairs, own_length, training_rows
from diagnostics.collectors.pytorch.loss_graph import with_shapes
from diagnostics.collectors.pytorch.losses import IGNORE_INDEX, recognise_loss
from diagnostics.collectors.pytorch.model import describe_model, end_token, named_arguments, uncompiled
from diagnostics.collectors.pytorch.new_weights import embedding_rows
from diagnostics.collectors.pytorch.optimizer import facts_together, unwrapped
from diagnostics.collectors.pytorch.watch.metrics.idle_settings import of_loader
from diagnostics.collectors.pytorch.worker_generators import worker_facts
from diagnostics.collectors.shared.arrays import LABEL_NAMES, to_array
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.pipeline import CannotJudge, Pipeline
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.loss_call import LossCalls
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.pipeline import BatchFacts, Fact, LossFacts
from diagnostics.facts.where import NO_PLACES, Places

from .loss_calls import RecordedLoss
from .probes.leaves import Reach
from .step_probe import StepProbe

LARGEST_OUTPUT = 2**24  # scalars of a prediction that are examined, which takes memory during the step


@dataclass(frozen=True)
class Given:
    """What a model was called with, held by reference.

    Attributes:
        inputs: the tensors by name; positional ones count from "0". Detached.
        versions: PyTorch's version counter of each at the call.
        arguments: (positional, named), detached; None if they hold objects that may change.
    """

    inputs: Mapping[str, Tensor]
    versions: Mapping[str, int]
    arguments: tuple[tuple[Any, ...], dict[str, Any]] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Tensor], arguments: Any = None) -> Given:
        """Describe a call that is about to run."""
        inputs = {name: tensor.detach() for name, tensor in given.items()}
        return cls(inputs, {name: tensor._version for name, tensor in inputs.items()}, arguments)

    def unchanged(self) -> dict[str, Tensor]:
        """Return the inputs that were not modified since."""
        return {name: one for name, one in self.inputs.items() if one._version == self.versions[name]}


NOTHING = Given({}, {})


@dataclass
class FirstPass:
    """One forward pass and its loss, held until they are examined.

    Attributes:
        called_with: the arguments of the model.
        prediction: what the model returned, detached, if the loss depends on nothing else.
        is_output: whether `prediction`, or that of `call`, is exactly what the model returned.
        call: the recorded call of a loss; None if there was none, or several.
        loss: the number that the backward pass begins with; None if there is none.
        exact: whether that is the result of `call` alone, but for a constant factor.
        of_model: whether the model returned the loss itself; None if not known.
        knows_labels: whether the scores depend on the labels, as with a margin on the true class.
        loader: the DataLoader that the batch came from; None if not known.
        batch: what the loader returned.
        direct: whether the loss read the memory that the module returned, in its order.
        items: the examples that a collator of the script's own made the batch of; None if not known.
        reach: what the loss depends on; None if it was not differentiated.
        graph: of the loss; None if it is not the last of several passes that led to it.
        terms: KL divergences beside other terms of the loss, and a loss that is not a common one.
        latest_loader: the DataLoader that was iterated last; the batch may have been changed since.
        places: lines of the script that led here.
    """

    called_with: Given
    prediction: Tensor | None = None
    is_output: bool = False
    call: RecordedLoss | None = None
    loss: float | None = None
    exact: bool = False
    of_model: bool | None = None
    knows_labels: bool = False
    loader: Any = None
    batch: Any = None
    direct: bool = False
    items: list[Any] | None = None
    reach: Reach | None = None
    graph: LossGraph | None = None
    terms: tuple[RecordedLoss, ...] = ()
    latest_loader: Any = None
    places: Places = NO_PLACES


class FirstStepPipeline(Pipeline):
    """A `Pipeline` of recorded values. Nothing is run again; rows are read only where that has no side effects.

    Which parameters get a gradient is left to the watcher: a single step may leave out a layer by chance.

    Attributes:
        model: the module of the loop, not compiled.
        optimizers: those that hold parameters of it.
        seen: its first pass.
        recognised: the loss, once the batch was examined.
        held: identities of the parameters of all optimizers of the script.
    """

    not_offered: Mapping[str, str] = {
        "backward": "the gradients are watched at every step",
        "overfit": "no copy is trained while the script trains",
        "evaluation": "no metric was given",
        "reproduction": "no step of the script is repeated",
    }

    def __init__(
        self, model: nn.Module, optimizers: list[Any], seen: FirstPass, held: Collection[int] = ()
    ) -> None:
        self.model = uncompiled(model)
        self.optimizers = [unwrapped(optimizer) for optimizer in optimizers]
        self.seen = seen
        self.held = held
        self.recognised = Recognised()
        self._target: Tensor | None = None
        self._read: DatasetFacts | None = None
        self.name = f"the first step of {type(self.model).__name__}"

    @contextlib.contextmanager
    def untouched(self) -> Iterator[None]:
        """See `Pipeline.untouched`. The script's own modes of PyTorch are suspended."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            yield

    def data_sources(self) -> tuple[Any, ...]:
        """See `Pipeline.data_sources`."""
        loader = self.seen.latest_loader if self.seen.loader is None else self.seen.loader
        return getattr(loader, "collate_fn", None), getattr(loader, "dataset", None)

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`."""
        described = describe_model(self.model, training=None, computes_loss=False)
        yield dataclasses.replace(described, computes_loss=self.seen.of_model)
        loader = self.seen.loader
        if (workers := worker_facts(self.seen.latest_loader if loader is None else loader)) is not None:
            yield workers
        if (settings := of_loader(loader)) is not None:
            yield settings
        if loader is None:
            raise CannotJudge("no DataLoader was seen to give this batch, so the dataset's rows cannot be counted")
        if (length := own_length(loader)) is not None:
            yield length
        self._read = training_rows(loader)
        yield self._read
        images = any(tensor.ndim == 4 for tensor in self.seen.called_with.unchanged().values())
        if images and (pairs := image_pairs(loader)) is not None:
            yield pairs

    def batch(self) -> Iterator[Fact]:
        """See `Pipeline.batch`."""
        self._recognise()
        seen = self.seen
        inputs = {
            name: array
            for name, tensor in seen.called_with.unchanged().items()
            if (array := to_array(tensor)) is not None
        }
        inputs = named_arguments(self.model, inputs)
        name = next((name for name in LABEL_NAMES if name in inputs), None)
        labels = inputs.pop(name) if name is not None else self._labels(inputs)
        if labels is None and seen.loader is None and seen.batch is None:
            raise CannotJudge("the target of the loss was not seen")
        sized = [array for array in (*inputs.values(), labels) if array is not None and array.ndim]
        if sized:  # a number for the whole batch, such as the Trainer's num_items_in_batch, is not an input
            inputs = {name: array for name, array in inputs.items() if array.ndim}
        yield BatchFacts(
            size=int(sized[0].shape[0]) if sized else 1,
            inputs=inputs,
            labels=labels if labels is None else np.atleast_1d(labels),
            labels_name=name,
            ignore_index=IGNORE_INDEX if seen.call is None else seen.call.ignore_index,
        )
        yield from self._probed("batch")
        if (end := end_token(self.model)) is not None:
            yield end
        if (added := embedding_rows.added_to(self.model)) is not None:
            yield added

    def forward(self) -> Iterator[Fact]:
        """See `Pipeline.forward`."""
        seen, found = self.seen, self.recognised
        prediction = seen.prediction if seen.call is None else seen.call.prediction
        if prediction is not None and self._target is not None:
            part, target = _first_rows(prediction, self._target)
            activation = last_activation(self.model) if seen.is_output else None
            if seen.call is not None and seen.call.made_by is not None:
                activation = seen.call.made_by
            facts = output_facts(part, target, found.num_classes, activation)
            scaled = seen.call is not None and seen.call.multiplied
            before = None if seen.call is None else seen.call.made_from
            yield dataclasses.replace(facts, shape=tuple(prediction.shape), multiplied=scaled, applied_to=before)
        calls = [] if seen.call is None else [seen.call.fact(whole=seen.exact)]
        calls += [term.fact() for term in seen.terms if term is not seen.call]
        if calls:
            yield LossCalls(tuple(calls))
        if seen.graph is not None:
            target = None if seen.batch is None else split_batch(seen.batch)[1]
            yield with_shapes(seen.graph, seen.prediction, target)
        if seen.loss is None:
            raise CannotJudge("no loss was computed")
        yield LossFacts(
            value=seen.loss,
            kind=found.kind,
            constant_baseline_loss=found.floor,
            class_weights=found.class_weights,
            weights=found.weights,
            reads=found.reads,
            broadcast=found.broadcast,
            name=None if seen.call is None else seen.call.name,
        )

    def optimizer_step(self) -> Iterator[Fact]:
        """See `Pipeline.optimizer_step`."""
        if not self.optimizers:
            raise CannotJudge("the script updates the weights itself")
        yield facts_together(self.optimizers, self.model)
        yield from self._probed("optimizer step")

    def _recognise(self) -> None:
        """Recognise the loss and its target."""
        seen = self.seen
        if seen.call is not None:
            self._target, self.recognised = seen.call.target, seen.call.recognised(self._of_classes(seen.call))
            if seen.knows_labels:  # then no guess is what they are measured by
                self.recognised = dataclasses.replace(self.recognised, kind="other", floor=None)
            return
        named = [seen.called_with.inputs[name] for name in LABEL_NAMES if name in seen.called_with.inputs]
        target = named[0] if named else None if seen.batch is None else split_batch(seen.batch)[1]
        if seen.loss is None or seen.prediction is None or not isinstance(target, Tensor):
            return
        if seen.prediction.numel() > LARGEST_OUTPUT or seen.prediction.device != target.device:
            return
        found = recognise_loss(seen.loss, seen.prediction, target)
        if found.kind != "other":
            self._target, self.recognised = target, found

    def _of_classes(self, call: RecordedLoss) -> bool:
        """Whether a target of zeros came with the batch while other rows have other classes.

        Such a first batch happens to hold a single class, as with few rows of any other. The index of the true
        pair, in contrast, is made next to the loss, or is the same in all rows.
        """
        classes, labels = call.num_classes, None if self._read is None else self._read.labels
        given = None if self.seen.batch is None else split_batch(self.seen.batch)[1]
        if classes is None or labels is None or labels.dtype.kind not in "iu" or not isinstance(given, Tensor):
            return False
        if given.numel() != call.target.numel() or bool(given.any()) or bool(call.target.any()):
            return False
        return bool(labels.min() >= 0 and labels.max() < classes and (labels != labels[0]).any())

    def _probed(self, stage: str) -> Iterator[Any]:
        """Yield what the probes of a stage measure."""
        kinds = [kind for kind in probes_in(probes, StepProbe) if kind.stage == stage]
        yield from (fact for kind in kinds for fact in kind(self).facts() if fact is not None)

    def _labels(self, inputs: Mapping[str, Array]) -> Array | None:
        """Return the target, in the shape of the inputs if the loss got it flattened."""
        labels = None if self._target is None else to_array(self._target)
        if labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu":
            for array in inputs.values():
                if array.ndim == 2 and array.size == labels.size and len(array) != labels.size:
                    return labels.reshape(array.shape)
        return labels


def _first_rows(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Cut both to their first rows where the prediction is large."""
    if prediction.numel() <= LARGEST_OUTPUT or not target.ndim or len(prediction) != len(target):
        return prediction, target
    rows = max(1, LARGEST_OUTPUT // (prediction.numel() // len(prediction)))
    return prediction[:rows], target[:rows]
