"""Measures what the answers of a model depend on: other examples, later tokens, each input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.errors import typed_message
from diagnostics.facts.dependence import REFUSED, DependenceFacts

from .batch_statistics import compare_statistics
from .copied import compare_copy
from .dropout import active_dropout, dropped_answers
from .examples import Unclear, axes, compare_examples
from .future import compare_future
from .inputs import compare_inputs, compare_steps
from .kept_pass import KeptPass, objection, subject_of
from .linear import find_linear
from .order import compare_order
from .padding import compare_padding
from .random_state import random_state
from .subject import OutOfTime, Subject

PARTS = (
    "examples",
    "inputs",
    "steps",
    "future",
    "padding",
    "copy",
    "linear",
    "dropout",
    "order",
    "state",
    "statistics",
)
NO_TIME = "the time for it was over"
MOST_SAID = 120  # characters of an error


def measure_module(
    model: nn.Module, kept: KeptPass, deadline: float, *, tests_inputs: bool = True
) -> DependenceFacts | str:
    """Measure a module that was trained, on a copy; return the reason if that must not be done.

    Args:
        model: the module, or a weak twin of it.
        kept: a batch of it.
        deadline: of `time.monotonic`.
        tests_inputs: whether an input that no answer depends on could be a mistake of the script's.
    """
    if (why := objection(model)) is not None:
        return why
    try:
        subject = subject_of(model, kept, deadline)
    except Exception as error:  # a class that cannot be copied
        return f"its model cannot be copied ({type(error).__name__})"
    if not tests_inputs:
        subject = replace(subject, tested=frozenset())
    try:
        with own_run(), own_warnings_ignored():
            subject.ask(subject.inputs)
    except OutOfTime:
        return NO_TIME
    except Exception as error:
        said = typed_message(error).strip().partition("\n")[0][:MOST_SAID]
        return f"a copy of its model raised {said}, given its first batch again"
    return replace(measure(subject), trained=True)


def measure(subject: Subject) -> DependenceFacts:
    """Measure each part that can be measured; what the model raises is a reason, not an error."""
    why_not: dict[str, str] = {}
    facts = DependenceFacts(shuffled=subject.shuffled)
    with own_run(), own_warnings_ignored():
        if not any(tensor.ndim for tensor in subject.inputs.values()):
            return replace(facts, why_not=dict.fromkeys(PARTS, "the model was called with no tensor"))
        found = _part(why_not, "examples", axes, subject)
        if found is None:
            why_not |= dict.fromkeys(("inputs", "steps", "linear"), why_not["examples"])
        else:
            facts = _part(why_not, "examples", compare_examples, subject, found) or facts
            inputs, of_first = _part(why_not, "inputs", compare_inputs, subject, found[0]) or ({}, ())
            linear = _part(why_not, "linear", find_linear, subject, found[0])
            of_steps = _part(why_not, "steps", compare_steps, subject, found[0]) if len(found) == 1 else None
            begin, end = of_steps or (None, None)
            facts = replace(facts, inputs=inputs, of_first=of_first, linear=linear)
            facts = replace(facts, first_step_of=begin, last_step_of=end)
        future = _part(why_not, "future", compare_future, subject)
        padding = _part(why_not, "padding", compare_padding, subject)
        order = _part(why_not, "order", compare_order, subject)
        copied = _part(why_not, "copy", compare_copy, subject)
        dropout, noise = _part(why_not, "dropout", active_dropout, subject) or ((), None)
        dropped = _part({}, "dropout", dropped_answers, subject)
        drawn = _part(why_not, "state", random_state, subject)
        statistics = _part(why_not, "statistics", compare_statistics, subject)
    return replace(
        facts,
        future=future,
        padding=padding,
        order=order,
        copy=copied,
        dropout=dropout,
        noise=noise,
        dropped=dropped,
        random_state=drawn,
        statistics=statistics,
        why_not=why_not,
    )


def _part(why_not: dict[str, str], name: str, work: Any, *arguments: Any) -> Any:
    """Do one part's work; None if it cannot be done."""
    try:
        return work(*arguments)
    except Unclear as reason:
        why_not[name] = str(reason)
    except OutOfTime:
        why_not[name] = NO_TIME
    except Exception as error:  # of the model, which may not take such a batch
        why_not[name] = f"{REFUSED} {type(error).__name__}"
    return None
