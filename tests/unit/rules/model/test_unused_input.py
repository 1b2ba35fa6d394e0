"""Unit tests of `UnusedInput`."""

from __future__ import annotations

import pytest

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, MixingFacts
from diagnostics.rules.model.unused_input import UnusedInput

RULE = UnusedInput()


def judge(**changes):
    return RULE.from_answers(DependenceFacts(inputs=changes))


def test_fires_on_an_input_that_changes_nothing():
    finding = judge(question=2.04, answer=0.0)
    assert (finding.rule, finding.severity) == ("unused-input", "warning")


def test_names_several():
    assert judge(a=1.0, b=0.0, c=0.0).severity == "warning"


def test_silent_where_each_input_matters():
    assert judge(question=2.0, answer=1e-7) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable):
        judge(question=1.0)
    with pytest.raises(NotApplicable):
        judge(question=0.0, answer=0.0)
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(why_not={"inputs": "all examples in the batch are identical"}))


def test_fires_on_an_input_of_the_first_example():
    finding = RULE.from_answers(DependenceFacts(inputs={"0": 1.0, "style": 2.0}, of_first=("style",)))
    assert finding.severity == "warning"


def test_fires_on_a_sequence_of_which_the_first_step_is_used():
    assert RULE.from_steps(DependenceFacts(first_step_of=12)).severity == "warning"
    assert RULE.from_steps(DependenceFacts()) is None


def test_an_unused_mask_follows_from_the_use_of_one_step():
    facts = DependenceFacts(inputs={"input_ids": 0.03, "attention_mask": 0.0}, first_step_of=12)
    assert RULE.from_answers(facts) is None
    same = Finding("ignores-input", "error", "model", "No prediction depends on it.", "use it")
    first = RULE.from_steps(facts)
    assert first is not None
    assert RULE.explains(first, same)
    assert RULE.explains(judge(question=2.04, answer=0.0), same) is None


def test_fires_on_a_sequence_of_which_the_last_step_is_used():
    finding = RULE.from_steps(DependenceFacts(last_step_of=10))
    assert (finding.rule, finding.severity) == ("unused-input", "warning")


@pytest.mark.parametrize("steps", [{"first_step_of": 12}, {"last_step_of": 12}])
def test_silent_where_a_layer_runs_along_the_batch(steps):
    """It has seen one step of each example, and examples-mixed names it."""
    lstm = MixingFacts("recurrent", "lstm (LSTM)", (32, 12, 6), 0)
    assert RULE.from_steps(DependenceFacts(mixing=lstm, **steps)) is None
