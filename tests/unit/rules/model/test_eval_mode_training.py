import dataclasses

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.layers import NeverInTraining, TrainModeFacts
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.rules.model.eval_mode_training import EvalModeTraining


def model(training, *layers):
    return ModelFacts("ResNet", "torch", 100, 100, training=training, mode_dependent_layers=layers)


class TestFires:
    def test_before_training_as_a_note(self):
        finding = EvalModeTraining().from_model(model(False, "bn1", "layer1.bn", "layer2.bn", "drop"))
        assert (finding.rule, finding.severity, finding.stage) == ("eval-mode-training", "note", "model")
        assert finding.evidence == {
            "training": False,
            "mode_dependent_layers": ["bn1", "layer1.bn", "layer2.bn", "drop"],
        }

    def test_for_a_single_layer_in_the_singular(self):
        assert EvalModeTraining().from_model(model(False, "drop")).severity == "note"

    def test_as_a_warning_once_the_step_itself_is_seen(self):
        assert EvalModeTraining.severity == "warning"


class TestStaysSilent:
    def test_in_training_mode(self):
        assert EvalModeTraining().from_model(model(True, "bn1")) is None

    def test_where_no_layer_minds(self):
        assert EvalModeTraining().from_model(model(False)) is None


def test_not_applicable_where_the_loop_decides_the_mode():
    with pytest.raises(NotApplicable):
        EvalModeTraining().from_model(model(None, "bn1"))


class TestWhileTraining:
    def modes(self, in_training, layers=("bn", "drop")):
        return TrainModeFacts(
            layers, (True, False)[: len(layers)], np.arange(len(in_training)), np.array(in_training)
        )

    def test_fires_where_the_mode_was_never_set(self):
        finding = EvalModeTraining().from_modes(self.modes([0] * 12))
        assert (finding.severity, finding.step) == ("warning", 0)

    def test_says_since_when(self):
        finding = EvalModeTraining().from_modes(self.modes([2] * 5 + [0] * 9))
        assert finding.step == 5

    def test_fires_on_an_evaluation_that_steps(self):
        epoch, sources = [2] * 6 + [0] * 2, [11] * 6 + [12] * 2
        seen = dataclasses.replace(self.modes(epoch * 3), sources=np.array(sources * 3))
        finding = EvalModeTraining().from_modes(seen)
        assert (finding.severity, finding.step) == ("warning", 6)

    @pytest.mark.parametrize("sources", [[11] * 24, [0] * 24, [11, 12] * 12], ids=["one", "none", "mixed"])
    def test_is_silent_on_other_modes_with_the_same_rows(self, sources):
        seen = dataclasses.replace(self.modes(([2] * 6 + [0] * 2) * 3), sources=np.array(sources))
        assert EvalModeTraining().from_modes(seen) is None

    def test_fires_on_keras_layers_that_no_call_in_training_mode_reached(self):
        assert (
            EvalModeTraining().from_state(NeverInTraining(("dropout", "batch_normalization"), 150)).severity
            == "warning"
        )
        with pytest.raises(NotApplicable):
            EvalModeTraining().from_state(NeverInTraining(("dropout",), 3))

    @pytest.mark.parametrize("in_training", [[2] * 12, [1] * 12, [0] * 5 + [2] * 7, [2] * 10 + [0] * 7], ids=str)
    def test_is_silent_if_a_layer_is_in_training_mode(self, in_training):
        assert EvalModeTraining().from_modes(self.modes(in_training)) is None

    def test_is_silent_where_no_layer_minds(self):
        assert EvalModeTraining().from_modes(self.modes([0] * 12, ())) is None

    def test_is_not_applicable_to_a_few_steps(self):
        with pytest.raises(NotApplicable):
            EvalModeTraining().from_modes(self.modes([0] * 7))
