import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.evaluation.constant_predictions import ConstantPredictions
from tests.support.courses import answers, history, judge

RULE = ConstantPredictions()
RUN = history([0.7] * 400, update=5e-3)


def evaluated(*given, labels=None):
    given = np.array(given)
    return {
        "evaluation_steps": 100 * np.arange(1, len(given) + 1),
        "evaluation_answers": given,
        "evaluation_labels": np.zeros_like(given) if labels is None else np.array(labels),
    }


class TestFires:
    def test_on_one_answer_for_everything_over_half_the_run(self):
        seen = answers([0.9] * 20, (12, 20), given=(0, 32), plain=False)
        finding = judge(RULE.from_answers, RUN, seen)
        assert (finding.rule, finding.severity, finding.step) == ("constant-predictions", "warning", 200)

    def test_on_one_answer_in_evaluation_where_training_has_several(self):
        seen = answers([0.3] * 20, **evaluated((64, 64), (0, 128), labels=[(64, 64), (60, 68)]))
        finding = judge(RULE.from_answers, RUN, seen)
        assert finding.severity == "warning"

    def test_as_a_note_where_the_labels_of_the_evaluation_are_not_known(self):
        finding = judge(RULE.from_answers, RUN, answers([0.3] * 20, **evaluated((128, 0), (128, 0))))
        assert finding.severity == "note"

    def test_as_a_note_where_one_class_is_that_common_and_the_only_one_that_is_answered(self):
        finding = judge(RULE.from_answers, RUN, answers([0.2] * 20, (29, 3), given=(32, 0)))
        assert (finding.severity, finding.step) == ("note", 200)
        assert finding.evidence == {"class": 0, "examples": 320, "labels": [290, 30]}

    def test_as_a_warning_where_its_scores_say_no_more_than_the_shares_of_the_classes(self):
        of_evaluations = evaluated((256, 0), (512, 0), labels=[(240, 16), (480, 32)])
        finding = judge(RULE.from_answers, RUN, answers([0.5] * 20, (29, 3), given=(32, 0), **of_evaluations))
        assert (finding.severity, finding.step) == ("warning", 200)


class TestSilent:
    def test_on_answers_that_vary(self):
        assert judge(RULE.from_answers, RUN, answers([0.9] * 20, given=(30, 2), plain=False)) is None

    def test_where_one_class_is_that_common_and_others_are_answered_too(self):
        assert judge(RULE.from_answers, RUN, answers([0.2] * 20, (4, 28), given=(1, 31))) is None

    def test_where_one_class_is_that_common_and_others_are_answered_in_evaluation(self):
        seen = answers([0.2] * 20, (4, 28), given=(0, 32), **evaluated((3, 197), labels=[(20, 180)]))
        assert judge(RULE.from_answers, RUN, seen) is None

    def test_where_next_to_nothing_else_was_looked_at(self):
        labels = [(0, 32)] * 11 + [(1, 31)] * 9
        assert judge(RULE.from_answers, RUN, answers([0.05] * 20, labels, given=(0, 32))) is None

    def test_where_the_plateau_has_been_told(self):
        assert judge(RULE.from_answers, RUN, answers([0.7] * 20, given=(32, 0))) is None

    def test_on_a_single_evaluation_whose_labels_are_not_known(self):
        assert judge(RULE.from_answers, RUN, answers([0.3] * 20, **evaluated((64, 64), (128, 0)))) is None

    def test_on_an_evaluation_of_one_class(self):
        seen = answers([0.3] * 20, **evaluated((128, 0), labels=[(128, 0)]))
        assert judge(RULE.from_answers, RUN, seen) is None


class TestNotApplicable:
    @pytest.mark.parametrize(
        ("run", "seen"),
        [
            (RUN, answers([0.7] * 20, softmax=False)),
            (history(steps=180), answers([0.7] * 9)),
            (RUN, answers([np.nan] * 20, (0, 0), given=(0, 32))),
            (history(steps=400, update=1e-3), answers([0.9] * 20, given=(0, 32))),
            (history(steps=400, update=1e-3), answers([0.5] * 20, (29, 3), given=(32, 0))),
        ],
    )
    def test_without_evidence(self, run, seen):
        with pytest.raises(NotApplicable):
            judge(RULE.from_answers, run, seen)
