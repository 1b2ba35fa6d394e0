"""Examines the first batch of a training loop of the script, once the script has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras.dependence.measure import measure
from diagnostics.collectors.keras.dependence.subject import KeptBatch, KerasSubject, objection
from diagnostics.collectors.keras.discover.tape_pass import TapePass
from diagnostics.collectors.keras.model import describe_model
from diagnostics.collectors.keras.optimizer import optimizer_facts
from diagnostics.collectors.keras.post_run.unreached_modes import never_in_training, still_statistics
from diagnostics.collectors.keras.values import array_of
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, UsersCodeRaised
from diagnostics.facts.loss_graph import LeafFacts
from diagnostics.facts.pipeline import Fact, GradientFacts

from .tf_step import HandedBatch

AVERAGES = ("sum_over_batch_size", "mean", "mean_with_sample_weight")  # reductions that `fit` uses as they are
SECONDS = 3.0  # that a trial on one batch takes at least, with its tracing


def tape_facts(seen: TapePass, deadline: float, failed: Callable[[], bool]) -> tuple[Fact, ...] | str:
    """Examine what a loop began with; the model is compiled meanwhile, and left as it was.

    Args:
        seen: of its first tape, with the only optimizer of the script.
        deadline: of `time.monotonic`.
        failed: whether the run did not learn, so that a trial on one batch is worth its time.

    Returns:
        Facts, or why there are none.
    """
    optimizer = seen.optimizer
    if not seen.parts or optimizer is None:
        return "the script has freed its model"
    if any(isinstance(part, keras.Model) and part.compiled for part in seen.parts):
        return "its model is also trained by fit"
    whole = len(seen.parts) == 1 and isinstance(seen.parts[0], keras.Model)
    model = seen.parts[0] if whole else Chain(seen.parts)
    if (why := objection(model)) is not None:
        return why
    with _restored(model):
        model.compile(optimizer=optimizer, loss=seen.loss, jit_compile=False)
        return _facts_of(model, seen, optimizer, deadline, failed)


def _facts_of(
    model: Any, seen: TapePass, optimizer: Any, deadline: float, failed: Callable[[], bool]
) -> tuple[Fact, ...]:
    facts: list[Fact] = [describe_model(model), *_held(seen, optimizer, model)]
    states = never_in_training(model, optimizer), still_statistics(model, optimizer)
    facts += [state for state in states if state is not None]
    if seen.unreached and seen.norms:
        facts.append(GradientFacts(True, seen.norms, seen.unreached, seen.asked))
    if seen.batch is None:
        return tuple(facts)
    averages = getattr(seen.loss, "reduction", None) in AVERAGES
    if averages and seen.batch.target is not None:
        with _as_at_first(seen), own_run():
            facts.extend(_stages(seen, model, seen.batch, deadline, failed))
    facts.append(measure(KerasSubject(model, seen.batch, deadline)))
    return tuple(facts)


def _stages(
    seen: TapePass, model: Any, batch: KeptBatch, deadline: float, failed: Callable[[], bool]
) -> Iterator[Fact]:
    x = keras.tree.pack_sequence_as(batch.structure, [tf.convert_to_tensor(part) for part in batch.inputs])
    pipeline = HandedBatch(model, (x, tf.convert_to_tensor(batch.target)), False, not seen.starts)
    stages = [pipeline.dataset, pipeline.batch, pipeline.forward]
    stages += [] if seen.unreached else [pipeline.backward]
    if failed() and time.monotonic() + SECONDS < deadline:
        stages.append(pipeline.overfit)
    with pipeline.untouched():
        for stage in stages:
            try:
                yield from stage()
            except (CannotJudge, StageFailed, UsersCodeRaised):
                return
            except (TypeError, ValueError, tf.errors.InvalidArgumentError):  # the loop shapes what `fit` cannot
                return


def _held(seen: TapePass, optimizer: Any, model: Any) -> list[Fact]:
    """Compare the optimizer with the variables that the loss depends on.

    It is usual to ask a tape for the gradients of a head alone, on top of a model that was trained before and that
    nobody froze. So what the optimizer lacks counts only if it is as it was made: its biases are still all 0.
    """
    facts = optimizer_facts(model)
    lacking = [variable for variable in model.trainable_variables if variable.path in facts.missing]
    apart = {
        part.name: sum(int(np.prod(v.shape)) for v in part.trainable_variables)
        for part in seen.parts[:-1]
        if part.trainable_variables and all(v.path in facts.missing for v in part.trainable_variables)
    }
    if lacking and not _as_made(lacking):
        return []
    if apart and facts.held:
        held = model.trainable_variables
        trained = sum(int(np.prod(v.shape)) for v in held if v.path not in facts.missing)
        return [replace(facts, missing={}), LeafFacts({}, apart, trained)]
    return [facts]


def _as_made(variables: list[Any]) -> bool:
    biases = [array_of(v) for v in variables if v.path.rpartition("/")[2] == "bias"]
    return bool(biases) and not any(values.any() for values in biases)


@contextmanager
def _restored(model: Any) -> Iterator[None]:
    """Restore the attributes of a model, whose `compile` sets some."""
    held = vars(model)
    before = dict(held)
    # By type: TensorFlow's wrappers call themselves dicts, and are none.
    lists = [(value, list(value)) for value in before.values() if issubclass(type(value), list)]
    dicts = [(value, dict(value)) for value in before.values() if issubclass(type(value), dict)]
    try:
        yield
    finally:
        for name in held.keys() - before.keys():
            del held[name]
        held.update(before)
        # Past Keras' own classes, which would track what is put back.
        for items, were in lists:
            if list(map(id, items)) != list(map(id, were)):
                list.__setitem__(items, slice(None), were)
        for pairs, was in dicts:
            dict.clear(pairs)
            dict.update(pairs, was)


@contextmanager
def _as_at_first(seen: TapePass) -> Iterator[None]:
    """Give the variables their first values within."""
    now = [(variable, array_of(variable)) for variable, _ in seen.starts]
    try:
        for variable, value in seen.starts:
            variable.assign(value)
        yield
    finally:
        for variable, value in now:
            variable.assign(value)


class Chain(keras.Model):  # type: ignore[misc]
    """Models and layers one after the other, as a loop calls them."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        super().__init__()
        self.parts = list(parts)
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Return what the last one makes of the inputs."""
        for part in self.parts:
            takes = getattr(part, "_call_has_training_arg", True)
            inputs = part(inputs, training=training) if takes else part(inputs)
        return inputs
