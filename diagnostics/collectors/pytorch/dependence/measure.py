"""Measures what the answers of a model depend on: other examples, later tokens, each input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.pytorch.dependence.padding import compare_pooling
from diagnostics.collectors.pytorch.new_weights import new_weights
from diagnostics.collectors.shared.dependence.copied import compare_copy
from diagnostics.collectors.shared.dependence.examples import (
    Axis,
    axes,
    compare_examples,
    dropped_answers,
    example_axis,
    moved_by_place,
)
from diagnostics.collectors.shared.dependence.future import compare_future, reads_ahead
from diagnostics.collectors.shared.dependence.inputs import compare_inputs, compare_steps, used_of_first
from diagnostics.collectors.shared.dependence.linearity import find_linear
from diagnostics.collectors.shared.dependence.packing import compare_packed
from diagnostics.collectors.shared.dependence.statistics import compare_statistics
from diagnostics.collectors.shared.dependence.subject import NO_TIME, OutOfTime, Unclear, by_part
from diagnostics.errors import typed_message
from diagnostics.facts.dependence import DependenceFacts, PooledPadding, UntrainedFacts

from .kept_pass import KeptPass, objection, subject_of
from .order import compare_order
from .padding import compare_padding
from .positions import compare_positions
from .randomness import active_dropout, random_state
from .subject import Subject

PARTS = (
    "examples",
    "inputs",
    "steps",
    "future",
    "padding",
    "packing",
    "copy",
    "linear",
    "dropout",
    "order",
    "state",
    "statistics",
)
MOST_SAID = 120  # characters of an error
MAX_TESTED = 8  # matrices: of a head, not of a whole backbone
LEAST = 1e-3  # change of the predictions, as a share of the largest: more than rounding


def measure_module(
    model: nn.Module,
    kept: KeptPass,
    deadline: float,
    *,
    tests_inputs: bool = True,
    evaluated: Sequence[KeptPass] = (),
    largest: KeptPass | None = None,
    over: bool = True,
) -> DependenceFacts | str:
    """Measure a module that was trained, on a copy; return the reason if that must not be done.

    Args:
        model: the module, or a weak twin of it.
        kept: a batch of it.
        deadline: of `time.monotonic`.
        tests_inputs: whether an input that no answer depends on could be a mistake of the script's.
        evaluated: batches without gradients that are padded in front, the latest first.
        largest: the largest batch of texts without gradients; None if none was seen.
        over: whether nothing trains the module any more.
    """
    if (why := objection(model)) is not None:
        return why
    try:
        subject = subject_of(model, kept, deadline, over=over)
    except Exception as error:  # a class that cannot be copied
        return f"the model cannot be copied ({type(error).__name__})"
    if not tests_inputs:
        subject.tested = frozenset()
    try:
        with own_run(), own_warnings_ignored():
            subject.ask(subject.inputs)
    except OutOfTime:
        return NO_TIME
    except Exception as error:
        said = typed_message(error).strip().partition("\n")[0][:MOST_SAID]
        return f"a copy of its model raised {said}, given its first batch again"
    found = measure(subject)
    why_not, shifted = {**found.why_not}, None
    with own_run(), own_warnings_ignored():
        untrained = by_part({}, "untrained", compare_untrained, subject, new_weights.frozen_in(model))
        for texts in evaluated:
            shifted = by_part(why_not, "positions", compare_positions, model, texts, kept, deadline)
            if shifted is not None:
                break
        pooled = by_part({}, "pooling", compare_pooling, subject, False)
        if pooled is None and largest is not None:
            pooled = by_part({}, "pooling", _pooled_in_evaluation, model, largest, deadline)
    return replace(found, trained=True, untrained=untrained, shifted=shifted, pooled=pooled, why_not=why_not)


def _pooled_in_evaluation(model: nn.Module, evaluated: KeptPass, deadline: float) -> PooledPadding:
    return compare_pooling(subject_of(model, evaluated, deadline), True)


def measure(subject: Subject) -> DependenceFacts:
    """Measure each part that can be measured; what the model raises is a reason, not an error."""
    why_not: dict[str, str] = {}
    facts = DependenceFacts(shuffled=subject.shuffled)
    with own_run(), own_warnings_ignored():
        if not any(tensor.ndim for tensor in subject.inputs.values()):
            return replace(facts, why_not=dict.fromkeys(PARTS, "the model was called with no tensor"))
        found = by_part(why_not, "examples", axes, subject)
        if found is None:
            why_not |= dict.fromkeys(("inputs", "steps", "linear"), why_not["examples"])
        else:
            facts = _of_examples(subject, found, facts, why_not)
        future = by_part(why_not, "future", compare_future, subject)
        padding = by_part(why_not, "padding", compare_padding, subject)
        packing = by_part(why_not, "packing", compare_packed, subject)
        order = by_part(why_not, "order", compare_order, subject)
        copied = by_part(why_not, "copy", compare_copy, subject)
        dropout, noise = by_part(why_not, "dropout", active_dropout, subject) or ((), None)
        dropped = by_part({}, "dropout", dropped_answers, subject)
        drawn = by_part(why_not, "state", random_state, subject)
        statistics = by_part(why_not, "statistics", compare_statistics, subject)
        ahead = by_part({}, "future", reads_ahead, subject)
    return replace(
        facts,
        future=future,
        padding=padding,
        packing=packing,
        order=order,
        copy=copied,
        dropout=dropout,
        noise=noise,
        dropped=dropped,
        random_state=drawn,
        statistics=statistics,
        reads_ahead=ahead,
        why_not=why_not,
    )


def _of_examples(
    subject: Subject, found: list[Axis], facts: DependenceFacts, why_not: dict[str, str]
) -> DependenceFacts:
    """Measure what takes other examples, cut along an axis that was found."""
    axis = by_part(why_not, "examples", example_axis, subject, found)
    measured = None if axis is None else by_part(why_not, "examples", compare_examples, subject, axis)
    if axis is not None and measured is not None:
        moved = by_part({}, "examples", moved_by_place, subject, axis)
        facts = replace(measured, moved=moved, shuffled=facts.shuffled)
    inputs, in_use = by_part(why_not, "inputs", compare_inputs, subject, found[0]) or ({}, [])
    of_first = by_part({}, "inputs", used_of_first, subject, found[0], in_use) if in_use else None
    linear = by_part(why_not, "linear", find_linear, subject, found[0])
    of_steps = by_part(why_not, "steps", compare_steps, subject, found[0]) if len(found) == 1 else None
    begin, end = of_steps or (None, None)
    facts = replace(facts, inputs=inputs, of_first=of_first or (), linear=linear)
    return replace(facts, first_step_of=begin, last_step_of=end)


def compare_untrained(subject: Subject, frozen: Mapping[str, int]) -> UntrainedFacts | None:
    """Shuffle the numbers of each matrix, and see whether any answer changes; None if there is no such matrix.

    Raises:
        Unclear: there are too many, or the answers are random.
        OutOfTime: the time is over.
    """
    if not frozen:
        return None
    if len(frozen) > MAX_TESTED:
        raise Unclear("a checkpoint lacked more weights than those of a head")
    parameters, used = dict(subject.model.named_parameters()), dict[str, int]()
    order, first = list[str](), None
    handles = [
        module.register_forward_hook(_noted(order, name))
        for name, module in subject.model.named_modules()
        if any(parameter.ndim >= 2 for parameter in module.parameters(recurse=False))
    ]
    try:
        first = subject.ask(subject.inputs)
    finally:
        for handle in handles:
            handle.remove()
    if first.change(subject.ask(subject.inputs, seed=1)) != 0:
        raise Unclear("the predictions are random in evaluation mode")
    generator = torch.Generator().manual_seed(0)
    largest = float(abs(first.main).max())
    for name, size in frozen.items():
        parameter: Tensor = parameters[name]
        with subject.restored(), torch.no_grad():
            numbers = parameter.flatten()
            parameter.copy_(numbers[torch.randperm(size, generator=generator)].view_as(parameter))
            change = first.change(subject.ask(subject.inputs))
        if change > LEAST * largest:
            used[name] = size
    if not used:
        return None
    last = bool(order) and any(name.rpartition(".")[0] == order[-1] for name in used)
    return UntrainedFacts(used, last)


def _noted(order: list[str], name: str) -> Callable[[nn.Module, object, object], None]:
    def ran(_module: nn.Module, _given: object, _returned: object) -> None:
        order.append(name)

    return ran
