import dataclasses

import pytest

from diagnostics.facts.inputs import EvaluationDraws
from diagnostics.rules.evaluation.augmented_evaluation import AugmentedEvaluation

RULE = AugmentedEvaluation()
FLIPPED = EvaluationDraws(rounds=4, rows=32, changed=0.5, change=0.7, turn=-0.5, likeness=0.98, shared=True)


def test_fires_on_rows_that_are_drawn_anew():
    finding = RULE.from_rounds(FLIPPED)
    assert (finding.rule, finding.severity) == ("augmented-evaluation", "warning")


def test_as_a_note_where_the_draw_may_be_meant():
    assert RULE.from_rounds(dataclasses.replace(FLIPPED, shared=False)).severity == "note"


@pytest.mark.parametrize(
    "other",
    [{"changed": 0.0}, {"change": 0.01}, {"turn": 0.9}, {"likeness": 0.3, "nearer": 3.0}],
    ids=["the same rows", "little noise", "changed in place", "made up again"],
)
def test_silent_on_others(other):
    assert RULE.from_rounds(dataclasses.replace(FLIPPED, **other)) is None


def test_fires_on_rows_that_little_is_left_of():
    assert RULE.from_rounds(dataclasses.replace(FLIPPED, likeness=0.3, nearer=6.0)).severity == "warning"
