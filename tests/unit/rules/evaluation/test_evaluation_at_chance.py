import dataclasses

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import AccuracyHistory, SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.dependence import DependenceFacts, StatisticsFacts
from diagnostics.facts.inputs import InputFacts, InputSample
from diagnostics.facts.layers import BatchNormFacts
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.rules.evaluation.evaluation_at_chance import EvaluationAtChance
from tests.support.courses import answers, history, judge

RULE = EvaluationAtChance()
RUN = history([0.1] * 400)
VERDICTS = Verdicts(frozenset(), frozenset({"evaluation-mismatch", "repeated-batch"}))

KERAS = ModelFacts("Sequential", "keras", 9, 9)
WITH_BATCH_NORM = ModelFacts("Sequential", "keras", 9, 9, mode_dependent_layers=("batch_normalization",))


def targets(error):
    fit = SimpleFit(300, 300, 0.5, error, True, True)
    return TargetHistory("cross_entropy", np.arange(4), np.ones(4), np.ones(4), 400, 2, fit)


def inputs(shift=0.0):
    rows = np.random.default_rng(0).normal(size=(64, 8, 1)).astype(np.float32)
    return InputFacts({"0": InputSample((rows,), 8)}, {"0": InputSample((rows[::-1] + shift,), 8)}, 5)


def evaluated(*confusions, right=30, **known):
    """Train to `right` of 32 answers right, with these evaluations: counts (labels, answers)."""
    counts = np.array(confusions)
    of_evaluations = {
        "evaluation_steps": 80 * np.arange(1, len(counts) + 1),
        "evaluation_answers": counts.sum(axis=1),
        "evaluation_labels": counts.sum(axis=2),
        "evaluation_right": np.array([np.trace(one) for one in counts]),
        "last_confusion": counts[-1],
    }
    labels = {2: (16, 16), 3: (12, 10, 10), 4: (8, 8, 8, 8)}[counts.shape[1]]
    return answers([0.1] * 20, labels, right=right, **(of_evaluations | known))


CHANCE = [[100, 100], [100, 100]]
SHIFTED = [[5, 90, 5], [5, 5, 90], [90, 5, 5]]


class TestFires:
    def test_on_labels_that_may_belong_to_other_rows(self):
        finding = judge(RULE.from_answers, RUN, evaluated(CHANCE, CHANCE), VERDICTS, targets(0.1), inputs())
        assert (finding.rule, finding.severity, finding.step) == ("evaluation-at-chance", "warning", 160)

    def test_on_classes_that_training_never_showed(self):
        new = np.zeros((4, 4), int)
        new[2:] = [60, 70, 0, 0], [40, 50, 0, 0]
        labels = (16, 16, 0, 0)
        known = evaluated(new, right=30)
        seen = dataclasses.replace(
            known, labels=np.tile(labels, (20, 1)), answers=np.tile(labels, (20, 1)), right=np.full(20, 30)
        )
        finding = judge(RULE.from_answers, RUN, seen, VERDICTS)
        assert finding.severity == "warning"

    def test_on_batches_of_eight(self):
        counts = np.array(SHIFTED)
        seen = dataclasses.replace(evaluated(counts), labels=np.tile((3, 3, 2), (20, 1)), right=np.full(20, 7))
        seen = dataclasses.replace(seen, answers=seen.labels)
        assert judge(RULE.from_answers, RUN, seen, VERDICTS).evidence["other_numbering"] == [1, 2, 0]

    def test_on_many_classes_of_which_few_examples_show_all(self):
        labels = np.zeros((20, 200), int)
        labels[np.arange(20), np.arange(20)] = 8  # of 200 classes, 160 examples show 20 or a hundred
        given = np.full(200, 2)
        seen = dataclasses.replace(
            evaluated(CHANCE), labels=labels, answers=labels, right=np.full(20, 8), evaluation_labels=given[None],
            evaluation_answers=given[None], evaluation_right=np.array([2]), last_confusion=None,
        )  # fmt: skip
        finding = judge(RULE.from_answers, RUN, seen, VERDICTS)
        assert (finding.severity, finding.evidence["classes_unseen_in_training"]) == ("warning", [])

    def test_on_classes_that_are_numbered_otherwise(self):
        finding = judge(RULE.from_answers, RUN, evaluated(SHIFTED), VERDICTS)
        assert finding.severity == "warning"
        assert finding.evidence["other_numbering"] == [1, 2, 0]

    def test_on_another_numbering_of_classes_that_are_not_yet_told_apart(self):
        counts = [[13, 1, 10, 15], [0, 0, 0, 43], [23, 1, 2, 18], [0, 34, 0, 0]]  # both 0 and 1 are most often 3
        finding = judge(RULE.from_answers, RUN, evaluated(counts), VERDICTS)
        assert (finding.severity, finding.evidence["other_numbering"]) == ("warning", [2, 3, 0, 1])

    def test_on_two_of_three_classes_that_are_swapped_above_chance(self):
        swapped = [[94, 3, 3], [3, 3, 94], [3, 94, 3]]
        finding = judge(RULE.from_answers, RUN, evaluated(SHIFTED, swapped), VERDICTS)
        assert finding.severity == "warning"
        assert finding.evidence["other_numbering"] == [0, 2, 1]

    @pytest.mark.parametrize(
        "facts",
        [(targets(0.5), inputs()), (), (targets(0.1),)],
        ids=["nothing to learn", "not known", "no inputs"],
    )
    def test_where_little_is_known(self, facts):
        assert judge(RULE.from_answers, RUN, evaluated(CHANCE), VERDICTS, *facts).severity == "warning"

    @pytest.mark.parametrize(
        ("seen", "facts"),
        [(evaluated(CHANCE), (targets(0.1), inputs(9.0))), (evaluated([[550, 450], [450, 550]]), ())],
        ids=["another domain", "a little better than chance"],
    )
    def test_as_a_note_where_it_may_be_meant(self, seen, facts):
        assert judge(RULE.from_answers, RUN, seen, VERDICTS, *facts).severity == "note"

    def test_as_a_note_on_two_classes_that_are_all_mistaken(self):
        wrong = [[20, 180], [180, 20]]
        finding = judge(RULE.from_answers, RUN, evaluated(wrong), VERDICTS, targets(0.1), inputs())
        assert finding.severity == "note"


class TestSilent:
    @pytest.mark.parametrize(
        "seen",
        [
            evaluated([[130, 70], [70, 130]]),
            evaluated([[130, 70], [70, 130]], CHANCE),
            evaluated(CHANCE, right=20),
            evaluated([[28, 27], [27, 28]]),
            evaluated(CHANCE, evaluation_spread=np.array([9.0])),
            evaluated([[60, 40, 0], [30, 30, 40], [0, 60, 40]]),
            evaluated([[60, 40, 0], [0, 45, 55], [0, 55, 45]]),
        ],
        ids=[
            "overfitting",
            "better before",
            "not learned",
            "too few to tell",
            "several evaluations",
            "neighbours taken for each other",
            "two classes confused",
        ],
    )
    def test_where_the_evaluation_or_the_training_says_otherwise(self, seen):
        assert judge(RULE.from_answers, RUN, seen, VERDICTS, targets(0.1), inputs()) is None

    def test_where_another_rule_names_the_cause(self):
        found = Verdicts(frozenset({"evaluation-mismatch"}), frozenset())
        assert judge(RULE.from_answers, RUN, evaluated(CHANCE), found) is None


class TestNotApplicable:
    @pytest.mark.parametrize(
        "seen",
        [
            evaluated([[190, 190], [10, 10]]),
            evaluated([[20, 20], [20, 20]]),
            evaluated(CHANCE, evaluation_right=None),
            evaluated(CHANCE, evaluation_labels=np.zeros((1, 2), int)),
            answers([0.1] * 20, right=30, softmax=False),
        ],
        ids=["placeholders", "few", "not counted", "labels not known", "no classifier"],
    )
    def test_without_labels_that_tell(self, seen):
        with pytest.raises(NotApplicable):
            judge(RULE.from_answers, RUN, seen, VERDICTS)


def epochs(evaluation=(0.51, 0.49), training=(0.7, 0.94), labels=(100, 100)):
    return AccuracyHistory(
        "accuracy", np.array([40, 80]), np.array(training), np.array(evaluation), np.array(labels)
    )


class TestBatchNorm:
    """Running statistics that had no time to follow the weights."""

    SHORT = history([0.1] * 16)
    NORMS = BatchNormFacts(("1",), np.array([0.1]), np.array([False]))

    def judged(self, statistics, run=SHORT):
        known = () if statistics is None else (DependenceFacts(trained=True, statistics=statistics),)
        seen = evaluated(CHANCE, evaluation_steps=np.array([16]))
        return judge(RULE.from_answers, run, seen, VERDICTS, targets(0.1), inputs(), self.NORMS, *known)

    def test_is_a_note_where_running_statistics_lag(self):
        finding = self.judged(StatisticsFacts(50, 24, 50, 25, memory=10.0))
        assert finding.severity == "note"

    def test_is_a_note_where_that_was_not_measured(self):
        finding = self.judged(None)
        assert finding.severity == "note"

    def test_is_a_warning_where_both_statistics_serve_alike(self):
        assert self.judged(StatisticsFacts(50, 49, 50, 25, memory=10.0)).severity == "warning"

    def test_is_a_warning_where_they_had_the_time(self):
        assert self.judged(StatisticsFacts(50, 24, 50, 25, memory=10.0), RUN).severity == "warning"


class TestOfKeras:
    @pytest.mark.parametrize("facts", [(), (targets(0.5), inputs()), (targets(0.1), inputs())])
    def test_fires_on_labels_that_may_belong_to_other_rows(self, facts):
        finding = judge(RULE.from_epochs, epochs(), KERAS, VERDICTS, *facts)
        assert (finding.rule, finding.severity, finding.step) == ("evaluation-at-chance", "warning", 80)

    @pytest.mark.parametrize(
        ("model", "facts"),
        [
            (KERAS, (targets(0.1), inputs(shift=9.0))),
            (WITH_BATCH_NORM, (targets(0.1), inputs())),
        ],
        ids=["other inputs", "batch norm"],
    )
    def test_is_a_note_where_it_may_be_meant(self, model, facts):
        assert judge(RULE.from_epochs, epochs(), model, VERDICTS, *facts).severity == "note"

    @pytest.mark.parametrize(
        "seen",
        [
            epochs(evaluation=(0.5, 0.7)),
            epochs(evaluation=(0.7, 0.5)),
            epochs(training=(0.5, 0.6)),
            epochs(evaluation=(0.52, 0.55), labels=(60, 60)),
        ],
        ids=["overfitting", "better before", "not learned", "too few to tell"],
    )
    def test_stays_silent_where_the_evaluation_or_the_training_says_otherwise(self, seen):
        assert judge(RULE.from_epochs, seen, KERAS, VERDICTS, targets(0.1), inputs()) is None

    @pytest.mark.parametrize(("model", "named"), [(WITH_BATCH_NORM, True), (KERAS, False)])
    def test_mentions_batch_norm_where_its_statistics_were_not_measured(self, model, named):
        finding = judge(RULE.from_epochs, epochs(), model, VERDICTS, targets(0.1), inputs())
        assert ("may be too few for these statistics" in finding.message) is named
        assert ("may be misaligned" in finding.message) is not named

    def test_names_batch_norm_where_its_statistics_lag_after_a_few_steps(self):
        lags = DependenceFacts(trained=True, statistics=StatisticsFacts(50, 24, 50, 25, memory=100.0))
        finding = judge(RULE.from_epochs, epochs(), WITH_BATCH_NORM, VERDICTS, targets(0.1), inputs(), lags)
        assert finding.severity == "note"
        assert "lag behind the weights after 80 steps" in finding.message
        assert "momentum" in finding.fixes["keras"][0]

    def test_answers_that_are_wrong_more_often_than_by_chance_are_a_warning(self):
        seen = epochs(evaluation=(0.1, 0.0), labels=(50, 50, 50))
        finding = judge(RULE.from_epochs, seen, WITH_BATCH_NORM, VERDICTS)
        assert finding.severity == "warning"
        of_two = judge(RULE.from_epochs, epochs(evaluation=(0.1, 0.0)), KERAS, VERDICTS)
        assert of_two.severity == "note"  # of two classes it may be meant

    @pytest.mark.parametrize("labels", [(40, 40), (200,), (170, 30)], ids=["few", "one class", "a rare class"])
    def test_does_not_apply_where_chance_is_not_known(self, labels):
        with pytest.raises(NotApplicable):
            judge(RULE.from_epochs, epochs(labels=labels), KERAS, VERDICTS)
