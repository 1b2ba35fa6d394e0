import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
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
