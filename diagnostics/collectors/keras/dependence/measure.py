"""Measures what the answers of a Keras model depend on: other examples, later tokens, each input."""

from __future__ import annotations

from dataclasses import replace

import keras

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.shared.dependence.copied import compare_copy
from diagnostics.collectors.shared.dependence.examples import (
    Axis,
    axes,
    compare_examples,
    dropped_answers,
    example_axis,
)
from diagnostics.collectors.shared.dependence.future import compare_future, reads_ahead
from diagnostics.collectors.shared.dependence.inputs import compare_inputs, compare_steps
from diagnostics.collectors.shared.dependence.linearity import find_linear
from diagnostics.collectors.shared.dependence.packing import compare_packed
from diagnostics.collectors.shared.dependence.padding import compare_padding, padded_input
from diagnostics.collectors.shared.dependence.statistics import compare_statistics
from diagnostics.collectors.shared.dependence.subject import Unclear, by_part
from diagnostics.facts.dependence import CopyFacts, DependenceFacts, FutureFacts, PaddingFacts

from .subject import KerasSubject


def measure(subject: KerasSubject) -> DependenceFacts:
    """Measure each part that can be measured; what the model raises is a reason, not an error."""
    why_not: dict[str, str] = {}
    facts = DependenceFacts()
    with own_run(), own_warnings_ignored():
        # First: a recurrent layer takes long, step by step, and the other parts run it over the padding again.
        padding = by_part(why_not, "padding", _compare_padding, subject)
        axis = by_part(why_not, "examples", lambda: example_axis(subject, axes(subject)))
        if axis is None:
            why_not |= dict.fromkeys(("inputs", "steps", "linear"), why_not["examples"])
        else:
            facts = by_part(why_not, "examples", compare_examples, subject, axis) or facts
        if axis is not None:
            inputs = by_part(why_not, "inputs", _compare_inputs, subject, axis)
            linear = by_part(why_not, "linear", find_linear, subject, axis)
            begin, end = by_part(why_not, "steps", _compare_steps, subject, axis) or (None, None)
            facts = replace(facts, inputs=inputs or {}, linear=linear, first_step_of=begin, last_step_of=end)
        future = by_part(why_not, "future", _compare_future, subject)
        packing = by_part(why_not, "packing", compare_packed, subject)
        copied = by_part(why_not, "copy", _compare_copy, subject)
        dropped = by_part({}, "dropout", dropped_answers, subject)
        statistics = by_part(why_not, "statistics", compare_statistics, subject)
        ahead = by_part({}, "future", reads_ahead, subject)
    return replace(
        facts,
        future=future,
        padding=padding,
        packing=packing,
        copy=copied,
        dropped=dropped,
        statistics=statistics,
        reads_ahead=ahead,
        why_not=why_not,
    )


def _compare_inputs(subject: KerasSubject, axis: Axis) -> dict[str, float]:
    """Compare the inputs of a model whose loss depends on nothing but predictions and targets."""
    changes, _ = compare_inputs(subject, axis)
    _check_loss(subject)
    return changes


def _compare_steps(subject: KerasSubject, axis: Axis) -> tuple[int | None, int | None]:
    """Compare the steps of a sequence, of a model whose loss depends on nothing but predictions and targets."""
    alone = compare_steps(subject, axis)
    _check_loss(subject)
    return alone


def _check_loss(subject: KerasSubject) -> None:
    """Check that a model does not compute a loss of its own; to be called when it has run.

    Raises:
        Unclear: it does, or may do so.
    """
    kind = type(subject.model)
    plain = kind.train_step is keras.Model.train_step and kind.compute_loss is keras.Model.compute_loss
    if subject.adds_losses or not plain or subject.model.loss is None:
        raise Unclear("the model computes its own loss, which may use inputs that the predictions do not")


def _compare_padding(subject: KerasSubject) -> PaddingFacts:
    """Compare padded rows with and without their padding."""
    padded = padded_input(subject.inputs)
    return compare_padding(lambda given: subject.ask(given).main, subject.inputs, padded, subject.target)


def _compare_future(subject: KerasSubject) -> FutureFacts:
    """Compare the answers to one text, of a model without a loss of its own."""
    facts = compare_future(subject)
    if len(subject.inputs) > 1:
        raise Unclear("the model takes other inputs besides the text")
    if subject.adds_losses:
        raise Unclear("the model does not return a single prediction for each position")
    return facts


def _compare_copy(subject: KerasSubject) -> CopyFacts:
    """Ask a model without a loss of its own whether it copies its targets from an input."""
    facts = compare_copy(subject)
    if subject.adds_losses:
        raise Unclear("the model adds a loss of its own")
    return facts
