"""Unit tests of `FutureLeak`."""

from __future__ import annotations

import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, FutureFacts
from diagnostics.rules.model.future_leak import FutureLeak

RULE = FutureLeak()


def judge(change, name="ids"):
    return RULE.from_answers(DependenceFacts(future=FutureFacts(change, 2.6, 14, 16, name)))


def test_fires_on_a_model_that_sees_the_next_token():
    finding = judge(5.96)
    assert (finding.rule, finding.severity) == ("future-leak", "error")


def test_names_an_input_without_a_name():
    assert judge(1.0, "0").severity == "error"


@pytest.mark.parametrize("change", [0.0, 1e-5])
def test_silent_on_a_causal_model(change):
    assert judge(change) is None


def test_not_applicable_where_the_model_may_read_ahead():
    why_not = {"future": "the model may be meant to read the whole text: LSTM receives or returns a summary of it"}
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(why_not=why_not))
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts())


def test_says_that_a_mask_is_inverted_where_only_later_tokens_count():
    for past in (0.0, 1.0):
        future = FutureFacts(5.96, 2.6, 14, 16, "ids", past=past)
        assert RULE.from_answers(DependenceFacts(future=future)).severity == "error"
