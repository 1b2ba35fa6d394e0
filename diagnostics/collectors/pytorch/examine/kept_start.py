"""Keeps how a loop began, so that a copy can be trained on its first batch when the script has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from diagnostics.collectors.isolation.harmless_code import is_library
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.activations import activations_seen
from diagnostics.collectors.pytorch.batch import distinct_rows, prediction_in
from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass, on_host
from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstStepPipeline
from diagnostics.collectors.pytorch.examine.model_copy import num_bytes, restore, starting_weights
from diagnostics.collectors.pytorch.losses import REGRESSIONS, unit_scale_loss
from diagnostics.collectors.pytorch.model import describe_model, uncompiled
from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder, full_rate, like
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors, tensors
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_plan import overfit
from diagnostics.facts.layers import LayerFacts
from diagnostics.facts.loss_contracts import TORCH
from diagnostics.facts.pipeline import BatchFacts, Fact, LossFacts

from .overfit import CopyTrainer

MOST_BYTES = 16 * 2**20  # of the weights of one model
REL_TOLERANCE = 1e-3  # of the loss of the first step, computed again
RANDOM_REL_TOLERANCE = 0.5  # the same, of a model that draws numbers
LOSSES = {
    name: getattr(F, name) for name, contract in TORCH.items() if contract.kind != "other"
}  # a script may replace them


class NotAsBefore(Exception):
    """The first step cannot be made again."""


@dataclass(frozen=True)
class KeptStart:
    """How a loop began, on the host.

    Attributes:
        values: of parameters and buffers, by name.
        kept: the batch.
        function: the name of the loss in `torch.nn.functional`; empty for a loss that is not one known call.
        options: its arguments, but for prediction and target.
        shape: of the prediction that it was given.
        value: the loss of the first step.
        recognised: which loss it is.
        rate: the learning rate; None if not known.
        optimizer: builds one of the same kind and settings; None if that is not known.
        name: its class; empty if it is not known.
    """

    values: Mapping[str, Tensor]
    kept: KeptPass
    function: str
    options: Mapping[str, Any]
    shape: tuple[int, ...]
    value: float
    recognised: Recognised
    rate: float | None
    optimizer: OptimizerBuilder | None
    name: str


def keep_start(model: nn.Module, kept: KeptPass, step: FirstStepPipeline) -> KeptStart | None:
    """Copy the weights before the first step; None if they are large, or if there is no loss."""
    call, found = step.seen.call, step.recognised
    if step.seen.loss is None:
        return None
    known = call is not None and step.seen.exact and call.name in LOSSES and found.floor is not None
    module, options = uncompiled(model), call.options if call is not None and known else {}
    if num_bytes(module) + sum(tensor.nbytes for tensor in tensors(options)) > MOST_BYTES:
        return None
    optimizers = step.optimizers
    only = optimizers[0] if len(optimizers) == 1 and is_library(type(optimizers[0])) else None
    with own_run():  # it tries to build one
        build = None if only is None else like(only, module)
    return KeptStart(
        values=starting_weights(module),
        kept=kept,
        function=call.name if call is not None and known else "",
        options=on_host(options),
        shape=tuple(call.prediction.shape) if call is not None and known else (),
        value=step.seen.loss,
        recognised=found,
        rate=None if only is None else full_rate(only),
        optimizer=build,
        name="" if only is None else type(only).__name__,
    )


def train_again(model: nn.Module, start: KeptStart) -> Iterator[Fact]:
    """Train copies of a model, from where it began, on its first batch.

    Args:
        model: as the script has left it; only its structure is used.
        start: what was kept.

    Raises:
        NotAsBefore: the loss of the first step comes out otherwise.
        CannotJudge: it takes too long.
    """
    again = _Again(model, start)
    with own_run(), own_warnings_ignored(), random_states_kept(), torch.enable_grad():
        torch.default_generator.manual_seed(0)
        first = again.fresh().train()
        with activations_seen(first) as seen:
            value = float(again.loss(first))
        other = float(again.loss(again.fresh().train()))  # of other random numbers: dropout, or noise
        tolerance = REL_TOLERANCE if other == value else RANDOM_REL_TOLERANCE
        if not abs(value - start.value) <= tolerance * max(abs(start.value), 1e-6):
            raise NotAsBefore(f"the loss of its first step was {start.value:.4g}, and is {value:.4g} on a copy")
        yield describe_model(first, training=True, computes_loss=False)
        yield again.batch()
        found = start.recognised
        yield LossFacts(start.value, found.kind, found.floor, found.class_weights, found.reads, found.broadcast)
        if seen:
            yield LayerFacts(tuple(seen))
        trainer = CopyTrainer(
            fresh=again.fresh,
            step=lambda copied, _number: again.loss(copied),
            predict=again.prediction,
            at_unit_scale=again.at_unit_scale,
            optimizer=start.optimizer,
        )
        yield from overfit(
            trainer.run,
            floor=found.floor,
            distinct_inputs=distinct_rows(again.inputs),
            their_rate=start.rate if start.optimizer is not None else None,
            warms_up=None,
            rescalable=found.kind in REGRESSIONS,
            num_trainable=sum(p.numel() for p in first.parameters() if p.requires_grad),
        )


class _Again:
    """Makes the first step again, on copies."""

    def __init__(self, model: nn.Module, start: KeptStart) -> None:
        self._start, self._target = start, start.kept.target
        self.inputs = dict(named_tensors(start.kept.inputs))
        self._model: nn.Module = whole_copy(uncompiled(model)).cpu()
        if not restore(self._model, start.values):
            raise NotAsBefore("its layers were replaced since its first step")

    def fresh(self) -> nn.Module:
        """Return a copy in the state in which the model began."""
        return whole_copy(self._model)

    def prediction(self, model: nn.Module) -> Tensor | None:
        """Return the prediction for the batch."""
        args, kwargs = self._start.kept.inputs
        return prediction_in(model(*on_host(args), **on_host(kwargs)))

    def loss(self, model: nn.Module) -> Tensor:
        """Compute the loss of the batch."""
        given, start = self.prediction(model), self._start
        if given is None or given.numel() != int(np.prod(start.shape)) or self._target is None:
            raise NotAsBefore("what its loss was given is not what the model returns")
        compute: Callable[..., Tensor] = LOSSES[start.function]
        return compute(given.reshape(start.shape), self._target, **start.options)

    def at_unit_scale(self, model: nn.Module) -> Tensor:
        """Compute a regression loss against targets brought to mean 0 and standard deviation 1."""
        given, found = self.prediction(model), self._start.recognised
        assert given is not None
        assert self._target is not None
        return (found.floor or 1.0) * unit_scale_loss(found.kind, given, self._target)

    def batch(self) -> BatchFacts:
        """Describe the batch."""
        labels = None if self._target is None else to_array(self._target)
        arrays = {name: array for name, t in self.inputs.items() if (array := to_array(t)) is not None}
        return BatchFacts(
            size=next((len(array) for array in arrays.values() if array.ndim), 1),
            inputs=arrays,
            labels=None if labels is None else np.atleast_1d(labels),
            ignore_index=self._start.kept.ignore_index,
        )
