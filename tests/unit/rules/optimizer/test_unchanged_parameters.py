import dataclasses
import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import EmptyFit, FrozenCalls, StepOrderFacts
from diagnostics.facts.pipeline import ModelFacts, OptimizerFacts
from diagnostics.rules.optimizer.unchanged_parameters import UnchangedParameters
from tests.support.courses import judge, recorded


def history(ratios, rate=0.1, norm=1.0, **known):
    ratios = np.array(ratios, np.float32)
    return recorded(
        total_steps=60,
        steps=np.arange(60),
        layers=("body", "head"),
        gradient_norms=np.full(60, norm, np.float32),
        layer_gradient_norms=np.full((60, 2), norm, np.float32),
        gradient_known=np.ones(60, bool),
        learning_rates=np.full((60, 1), rate),
        training_mode=np.ones(60, np.int8),
        passes=np.ones(60, np.int64),
        gradients_zeroed=np.ones(60, np.int8),
        sampled_steps=np.arange(len(ratios)) * 20,
        update_ratios=ratios,
        **known,
    )


STILL = history(np.zeros((4, 2)))


def without_a_step(passes):
    return dataclasses.replace(
        STILL, steps=dataclasses.replace(STILL.steps, total_steps=0, steps_without_optimizer=passes)
    )


class TestFires:
    @pytest.mark.parametrize(("zeroed", "found"), [(8, True), (0, False)])
    def test_on_accumulation_that_is_longer_than_an_epoch(self, zeroed, found):
        run = dataclasses.replace(without_a_step(0), updates=None, gradients=None)
        order = StepOrderFacts(0, 0, 0, passes=200, zeroed=zeroed, moved=False)
        if found:
            assert judge(UnchangedParameters().from_history, run, order).evidence["passes"] == 200
        else:
            with pytest.raises(NotApplicable):
                judge(UnchangedParameters().from_history, run, order)

    def test_on_an_optimizer_that_holds_another_model(self):
        optimizer = OptimizerFacts("Adam", (1e-3,), {"body.weight": 4}, held=0, foreign=2)
        finding = judge(UnchangedParameters().from_history, STILL, optimizer)
        assert (finding.rule, finding.severity, finding.stage) == ("unchanged-parameters", "error", "optimizer")
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_a_learning_rate_of_nothing(self):
        assert judge(UnchangedParameters().from_history, history(np.zeros((4, 2)), rate=0.0)).severity == "error"

    def test_on_steps_without_a_gradient(self):
        facts = dataclasses.replace(STILL, gradients=None)
        assert judge(UnchangedParameters().from_history, facts).severity == "error"

    def test_on_a_loss_that_is_cut_off_from_the_parameters(self):
        facts = dataclasses.replace(STILL, gradients=None)
        order = StepOrderFacts(60, 0, 0, 60, 60, moved=False)
        cut = judge(UnchangedParameters().from_history, facts, order)
        uncalled = judge(
            UnchangedParameters().from_history, facts, dataclasses.replace(order, without_backward=60)
        )
        assert "does not depend on these parameters" in cut.message
        assert "does not depend" not in uncalled.message

    def test_on_gradients_of_exactly_zero(self):
        zero = history(np.zeros((4, 2)), norm=0.0, losses=np.full(60, 1.4))
        there = dataclasses.replace(zero.gradients, reached=np.array([True, True]))
        assert (
            judge(UnchangedParameters().from_history, dataclasses.replace(zero, gradients=there)).severity
            == "error"
        )

    def test_on_gradients_that_were_cleared_before_the_step(self):
        zero = history(np.zeros((4, 2)), norm=0.0)
        there = dataclasses.replace(zero.gradients, reached=np.array([True, True]))
        order = StepOrderFacts(60, 60, 0, 60, 60, moved=False)
        assert (
            judge(UnchangedParameters().from_history, dataclasses.replace(zero, gradients=there), order).severity
            == "error"
        )

    def test_on_gradients_that_keras_does_not_show(self):
        facts = dataclasses.replace(STILL, gradients=None)
        model = ModelFacts("Sequential", "keras", num_parameters=10, num_trainable=10)
        assert judge(UnchangedParameters().from_history, facts, model).severity == "error"

    def test_on_updates_too_small_for_the_dtype(self):
        assert judge(UnchangedParameters().from_history, history([[0, np.nan]] * 4)).severity == "error"

    def test_on_a_loop_that_forgot_to_step(self):
        facts = without_a_step(240)
        assert judge(UnchangedParameters().from_history, facts).severity == "error"


class TestSilent:
    def test_on_a_model_that_trains(self):
        assert judge(UnchangedParameters().from_history, history([[1e-3, 2e-3]] * 4)) is None

    def test_on_a_warm_up_from_zero_and_a_schedule_down_to_zero(self):
        assert judge(UnchangedParameters().from_history, history([[0, 0], [1e-9, 0], [0, 0], [0, 0]])) is None

    def test_on_weights_that_move_between_the_sampled_steps(self):
        norms = np.array([[1.0, 2.0], [1.1, 2.0], [1.2, 2.0], [1.3, 2.0]], np.float32)
        assert judge(UnchangedParameters().from_history, history(np.zeros((4, 2)), weight_norms=norms)) is None

    def test_on_a_frozen_layer(self):
        assert judge(UnchangedParameters().from_history, history([[0, 1e-3]] * 4)) is None

    def test_on_a_long_accumulation(self):
        facts = dataclasses.replace(without_a_step(64), updates=None)
        with pytest.raises(NotApplicable):
            judge(UnchangedParameters().from_history, facts)


def test_not_applicable_before_enough_steps_were_compared():
    with pytest.raises(NotApplicable):
        judge(UnchangedParameters().from_history, history(np.zeros((2, 2))))


def test_not_applicable_to_steps_after_the_weights_became_nan():
    facts = history(np.zeros((4, 2)), losses=np.full(60, np.nan))
    with pytest.raises(NotApplicable):
        judge(UnchangedParameters().from_history, facts)
    with pytest.raises(NotApplicable):
        judge(UnchangedParameters().from_history, history(np.full((4, 2), np.nan)))


def test_a_model_that_is_frozen_each_time_that_it_is_trained():
    finding = UnchangedParameters().from_frozen(FrozenCalls("discriminator", 50, 1200))
    assert (finding.rule, finding.severity) == ("unchanged-parameters", "error")


def test_names_a_fit_that_begins_after_its_last_epoch():
    finding = UnchangedParameters().from_empty_fit(EmptyFit(5, 5, fitted=5))
    assert (finding.rule, finding.severity) == ("unchanged-parameters", "warning")


def test_notes_a_training_that_is_resumed_when_it_is_over():
    assert UnchangedParameters().from_empty_fit(EmptyFit(5, 5, fitted=None)).severity == "note"
