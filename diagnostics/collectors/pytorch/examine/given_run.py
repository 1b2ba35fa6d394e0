"""Runs experiments on copies of a model with batches that the caller gives."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.dependence.kept_pass import on_host
from diagnostics.collectors.pytorch.discover.training_batches import MOST, TrainedBatch
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.collectors.pytorch.optimizer import full_rate, like
from diagnostics.collectors.pytorch.state import random_states_kept, tensors_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import named_tensors
from diagnostics.facts.experiments import Experiments
from diagnostics.facts.loss_contracts import LossContract, contract_of

from .experiments import Run, experiments


def run_of_batches(
    model: nn.Module,
    loss: Callable[..., Any],
    batches: Iterable[Any],
    optimizer: Any,
    steps: int,
    deadline: float,
) -> Experiments | str:
    """Run the experiments; return why they cannot be run, if so.

    Args:
        model: with the weights to begin with.
        loss: of prediction and target.
        batches: sequences that end with the target.
        optimizer: of the model; None for Adam.
        steps: of a copy.
        deadline: of `time.monotonic`.
    """
    inner = uncompiled(model)
    with own_run(), own_warnings_ignored(), random_states_kept(batches), tensors_kept(inner):
        given = optimizer if optimizer is not None else torch.optim.Adam(inner.parameters())
        build, rate = like(given, inner), full_rate(given)
        if build is None or not rate:
            return "the optimizer cannot be rebuilt for a copy"
        taken = [batch for batch in itertools.islice(batches, MOST) if isinstance(batch, list | tuple)]
        if not taken or not all(isinstance(part, Tensor) for batch in taken for part in batch):
            return "the batches are not (inputs, target) in tensors"
        fresh: nn.Module = copy.deepcopy(inner).cpu()
        first = tuple(on_host(part) for part in taken[0])
        with torch.no_grad():
            prediction = prediction_in(copy.deepcopy(fresh)(*first[:-1]))
        if prediction is None:
            return "the model returns no tensor"
        return experiments(
            Run(
                model=fresh,
                given=(first[:-1], {}),
                loss=_on_host(loss),
                contract=_contract(loss, prediction, first[-1]),
                options={},
                optimizer=build,
                name=type(given).__name__,
                rate=rate,
                batches=[
                    _recorded(batch, len(prediction) // max(1, len(first[0])), prediction) for batch in taken
                ],
                idle=frozenset(name for name, module in inner.named_modules() if not module.training),
            ),
            deadline,
            steps,
        )


def _on_host(loss: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a copy of a loss on the host, if it is a module."""
    copied: Callable[..., Tensor] = copy.deepcopy(loss).cpu() if isinstance(loss, nn.Module) else loss
    return copied


def _recorded(batch: Any, places: int, prediction: Tensor) -> TrainedBatch:
    """Return a batch; `places`: of the prediction's first axis for each row."""
    *inputs, target = batch
    shape = (len(inputs[0]) * places, *prediction.shape[1:])
    return TrainedBatch(dict(named_tensors((tuple(inputs), {}))), target, shape, None)


def _contract(loss: Any, prediction: Tensor, target: Tensor) -> LossContract:
    """Return what is known of a loss, by its name; of any other, what its target looks like."""
    known = contract_of(type(loss).__name__ if isinstance(loss, nn.Module) else getattr(loss, "__name__", ""))
    if known.targets is not None:
        return known
    if target.is_floating_point():
        return LossContract(targets="numbers")
    return LossContract(targets="classes", class_axis=1) if prediction.ndim == target.ndim + 1 else known
