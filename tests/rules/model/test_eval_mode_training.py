import pytest

from diagnostics.facts import ModelFacts
from diagnostics.rule import NotApplicable
from diagnostics.rules.model.eval_mode_training import EvalModeTraining


def model(training, *layers):
    return ModelFacts("ResNet", "torch", 100, 100, training=training, mode_dependent_layers=layers)


class TestFires:
    def test_before_training_as_a_note(self):
        finding = EvalModeTraining().from_model(model(False, "bn1", "layer1.bn", "layer2.bn", "drop"))
        assert (finding.rule, finding.severity, finding.stage) == ("eval-mode-training", "note", "model")
        assert finding.message == (
            "ResNet is in evaluation mode, but 4 of its layers behave differently in training (bn1, layer1.bn, "
            "layer2.bn and 1 more). Unless the training loop switches the mode, dropout drops nothing and batch "
            "norm learns no statistics."
        )
        assert finding.fix == "model.train()  # at the start of each epoch, after any evaluation"
        assert finding.evidence == {
            "training": False,
            "mode_dependent_layers": ["bn1", "layer1.bn", "layer2.bn", "drop"],
        }

    def test_for_a_single_layer_in_the_singular(self):
        finding = EvalModeTraining().from_model(model(False, "drop"))
        assert "but 1 of its layers behaves differently in training (drop)." in finding.message

    def test_as_a_warning_once_the_step_itself_is_seen(self):
        assert EvalModeTraining.severity == "warning"


class TestStaysSilent:
    def test_in_training_mode(self):
        assert EvalModeTraining().from_model(model(True, "bn1")) is None

    def test_where_no_layer_minds(self):
        assert EvalModeTraining().from_model(model(False)) is None


def test_not_applicable_where_the_loop_decides_the_mode():
    with pytest.raises(NotApplicable, match="needs a model whose mode is set before the training loop starts"):
        EvalModeTraining().from_model(model(None, "bn1"))
