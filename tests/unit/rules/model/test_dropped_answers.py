"""Unit tests of `DroppedAnswers`."""

from __future__ import annotations

import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.rules.model.dropped_answers import DroppedAnswers

RULE = DroppedAnswers()


def test_fires_on_answers_that_are_erased():
    finding = RULE.from_answers(DependenceFacts(dropped=0.352))
    assert (finding.rule, finding.severity) == ("dropped-answers", "warning")


@pytest.mark.parametrize("dropped", [0.0, 0.01, 1.0])
def test_silent(dropped):
    assert RULE.from_answers(DependenceFacts(dropped=dropped)) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts())
