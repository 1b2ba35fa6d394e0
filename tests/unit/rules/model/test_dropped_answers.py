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
    assert finding.message == (
        "In training mode 35% of the model's predictions are exactly 0, and in evaluation mode none is: a dropout "
        "stands after the last layer. It erases predictions at random before the loss sees them, and scales up "
        "the others."
    )
    assert finding.fix == "take out the dropout after the last layer; it belongs between the hidden layers"


@pytest.mark.parametrize("dropped", [0.0, 0.01, 1.0])
def test_silent(dropped):
    assert RULE.from_answers(DependenceFacts(dropped=dropped)) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable, match="needs a copy of the model"):
        RULE.from_answers(DependenceFacts())
