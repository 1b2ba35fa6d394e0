import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.dependence import DependenceFacts, StatisticsFacts
from diagnostics.facts.layers import BatchNormFacts, StillStatistics
from diagnostics.rules.model.wrong_batch_norm_momentum import WrongBatchNormMomentum
from tests.support.courses import answers, history, judge

RULE = WrongBatchNormMomentum()


def norms(momentum, untouched=False, layers=("bn1", "bn2")):
    return BatchNormFacts(layers, np.full(len(layers), momentum), np.full(len(layers), untouched))


def run(steps=200, in_training=0):
    counts = {"no_grad_passes": 10, "no_grad_passes_in_training_mode": in_training, "no_grad_rounds": 2}
    return history([1.0] * steps, **counts)


def evaluated(right, of=200):
    half = [of // 2, of - of // 2]
    return answers(
        np.full(10, 0.3),
        right=30,
        evaluation_steps=np.array([199]),
        evaluation_answers=np.array([half]),
        evaluation_labels=np.array([half]),
        evaluation_right=np.array([right]),
    )


class TestFires:
    def test_on_statistics_that_never_move(self):
        finding = judge(RULE.from_layers, run(), norms(0.0, untouched=True), evaluated(90))
        assert (finding.rule, finding.stage, finding.severity) == ("wrong-batch-norm-momentum", "model", "warning")

    def test_on_the_momentum_of_another_library_where_the_evaluation_is_worse(self):
        finding = judge(RULE.from_layers, run(), norms(0.99), evaluated(90))
        assert finding.severity == "warning"

    def test_as_a_note_where_no_harm_is_seen(self):
        assert judge(RULE.from_layers, run(), norms(0.99), evaluated(180)).severity == "note"
        assert judge(RULE.from_layers, run(), norms(0.99), evaluated(20, of=50)).severity == "note"
        assert judge(RULE.from_layers, run(), norms(0.99)).severity == "note"
        still = norms(0.0, untouched=True)
        assert judge(RULE.from_layers, run(), still).severity == "note"
        assert judge(RULE.from_layers, run(), still, evaluated(180)).severity == "note"
        assert judge(RULE.from_layers, run(in_training=10), still, evaluated(90)).severity == "note"

    @pytest.mark.parametrize(("given", "severity"), [([200, 0], "warning"), ([120, 80], "note")])
    def test_where_other_classes_are_answered_than_in_training(self, given, severity):
        unlabelled = answers(
            np.full(10, 0.3),
            evaluation_steps=np.array([199]),
            evaluation_answers=np.array([given]),
            evaluation_labels=np.array([[0, 0]]),
            evaluation_right=np.array([0]),
        )
        assert judge(RULE.from_layers, run(), norms(0.0, untouched=True), unlabelled).severity == severity


class TestIsSilent:
    @pytest.mark.parametrize("momentum", [0.1, 0.01, 0.001, 0.5, np.nan])
    def test_on_other_momentums(self, momentum):
        assert judge(RULE.from_layers, run(), norms(momentum, untouched=momentum == 0.001), evaluated(90)) is None

    def test_on_loaded_statistics_that_are_kept_on_purpose(self):
        assert judge(RULE.from_layers, run(), norms(0.0)) is None

    def test_not_applicable_to_a_few_steps(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_layers, run(steps=10), norms(0.0, untouched=True))


def test_names_layers_of_keras_that_keep_all_of_the_old_statistics():
    finding = RULE.from_state(StillStatistics(("norm", "norm_1"), 228))
    assert (finding.rule, finding.severity) == ("wrong-batch-norm-momentum", "warning")
    with pytest.raises(NotApplicable):
        RULE.from_state(StillStatistics(("norm",), 19))


class TestLag:
    """Statistics that are averages over more steps than the run had."""

    def lagging(self, running=8, own=62, steps=138, memory=100.0, trained=True, **verdicts):
        found = StatisticsFacts(64, running, own, most_frequent=10, memory=memory)
        dependence = DependenceFacts(statistics=found, trained=trained)
        return judge(RULE.from_lag, run(steps), dependence, Verdicts(frozenset(), frozenset(), **verdicts))

    def test_names_statistics_that_do_not_fit_the_weights(self):
        finding = self.lagging()
        assert (finding.rule, finding.severity) == ("wrong-batch-norm-momentum", "warning")
        assert (finding.evidence["averaged_over"], finding.evidence["steps"]) == (100, 138)
        assert finding.fixes["keras"][0].startswith("keras.layers.BatchNormalization(momentum=0.9)")

    @pytest.mark.parametrize(
        "seen",
        [
            {"running": 60},
            {"running": 40},
            {"own": 14},
            {"steps": 500},
            {"memory": 10.0},
            {"memory": np.inf},
        ],
        ids=[
            "alike",
            "most of the gain is left",
            "nothing learned",
            "a long run",
            "PyTorch's default",
            "a mean of all",
        ],
    )
    def test_is_silent_where_they_fit_or_had_the_time(self, seen):
        assert self.lagging(**seen) is None

    @pytest.mark.parametrize(
        "seen",
        [{"steps": 99}, {"complete": False}, {"trained_alone": False}, {"trained": False}],
        ids=["a quick look", "interrupted", "in turns", "not trained"],
    )
    def test_does_not_apply_to(self, seen):
        with pytest.raises(NotApplicable):
            self.lagging(**seen)

    def test_needs_a_classifier(self):
        unknown = DependenceFacts(trained=True, why_not={"statistics": "the labels of the batch are not known"})
        with pytest.raises(NotApplicable, match="labels of the batch"):
            judge(RULE.from_lag, run(), unknown, Verdicts(frozenset(), frozenset()))
