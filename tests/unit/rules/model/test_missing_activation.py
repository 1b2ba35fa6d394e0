"""Unit tests of `MissingActivation`."""

from __future__ import annotations

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import SimpleFit, TargetHistory
from diagnostics.facts.dependence import DependenceFacts, LinearFacts
from diagnostics.facts.training import LossHistory, StepHistory
from diagnostics.rules.model.missing_activation import MissingActivation

RULE = MissingActivation()
LAYERS = ("layer_1 (Linear)", "layer_2 (Linear)", "layer_3 (Linear)")
RADIAL = SimpleFit(300, 300, constant_error=1.0, error=0.2, linear=False, of_classes=False)


def facts(narrowest=16, inputs=2, outputs=1, layers=LAYERS):
    return DependenceFacts(linear=LinearFacts(layers, narrowest, inputs, outputs))


def course(ended, fit=RADIAL, kind="mean_squared_error", steps=300):
    at = np.arange(steps)
    losses = LossHistory(steps=at, values=np.full(steps, float(ended)))
    ones = np.ones(steps, np.int64)
    history = StepHistory(steps, at, np.full((steps, 1), 0.1), ones, ones, ones, at.astype(np.uint64), 16 * ones)
    targets = TargetHistory(kind, at, losses.values, np.ones(steps), 600, 1, fit)
    return {"steps": history, "losses": losses, "targets": targets}


def test_notes_a_row_of_layers():
    finding = RULE.from_answers(facts())
    assert (finding.rule, finding.severity) == ("missing-activation", "note")


def test_warns_where_a_fit_that_is_not_linear_does_better():
    finding = RULE.from_answers(facts(), **course(0.7))
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    "known",
    [
        course(0.3),
        course(0.7, fit=SimpleFit(300, 300, 1.0, 0.2, linear=True, of_classes=False)),
        course(0.7, fit=SimpleFit(300, 300, 1.0, 0.9, linear=False, of_classes=False)),
        course(0.7, fit=None),
        course(0.7, kind="cross_entropy"),
        course(0.7, steps=90),
    ],
    ids=["learned", "linear", "nothing to learn", "not tried", "another unit", "short"],
)
def test_stays_a_note_without_proof(known):
    assert RULE.from_answers(facts(), **known).severity == "note"


def test_silent_at_a_bottleneck():
    assert RULE.from_answers(facts(narrowest=8, inputs=64, outputs=64)) is None


def test_silent_on_a_model_that_is_not_linear():
    assert RULE.from_answers(DependenceFacts()) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(why_not={"linear": "needs a model with one input"}))
