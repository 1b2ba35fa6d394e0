import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.layers import ActivationFacts, ActivityFacts, LayerActivity, LayerFacts
from diagnostics.facts.pipeline import BatchFacts, OutputFacts
from diagnostics.rules.model.saturated_activations import SaturatedActivations
from tests.support.courses import judge, recorded

RULE = SaturatedActivations()
BATCH = BatchFacts(32, {})
TEN = OutputFacts((32, 10), 10)


def bounded(layer: str, saturated: int, units: int = 64, function: str = "tanh") -> ActivationFacts:
    return ActivationFacts(layer, function, units, 0, saturated)


class TestFires:
    def test_and_names_the_layers(self):
        layers = LayerFacts((bounded("1", 46), bounded("3", 2), bounded("5", 32, 32, "hard_sigmoid")))
        finding = RULE.from_layers(layers, TEN, BATCH)
        assert (finding.rule, finding.severity, finding.stage) == ("saturated-activations", "warning", "model")
        assert finding.evidence == {
            "layers": {
                "1": {"function": "tanh", "saturated": 46, "units": 64},
                "5": {"function": "hard_sigmoid", "saturated": 32, "units": 32},
            },
            "examples": 32,
        }

    def test_and_names_at_most_five(self):
        layers = LayerFacts(tuple(bounded(str(number), 64) for number in range(6)))
        assert RULE.from_layers(layers, TEN, BATCH).severity == "warning"

    def test_above_one_half(self):
        assert RULE.from_layers(LayerFacts((bounded("1", 33),)), TEN, BATCH) is not None
        assert RULE.from_layers(LayerFacts((bounded("1", 32),)), TEN, BATCH) is None


class TestStaysSilent:
    @pytest.mark.parametrize("function", ["tanh", "sigmoid", "hardtanh", "hardsigmoid"])
    def test_on_what_healthy_initialisation_shows(self, function):
        assert RULE.from_layers(LayerFacts((bounded("1", 3, 16, function),)), TEN, BATCH) is None

    def test_on_a_last_layer_that_is_sure(self):
        layers = LayerFacts((bounded("1", 0), bounded("3", 80, 80, "sigmoid")))
        assert RULE.from_layers(layers, OutputFacts((32, 80), None), BATCH) is None


class TestNotApplicable:
    @pytest.mark.parametrize("layer", [bounded("gate", 8, 8, "sigmoid"), bounded("1", 64, function="relu")])
    def test_to_gates_and_other_functions(self, layer):
        with pytest.raises(NotApplicable):
            RULE.from_layers(LayerFacts((layer,)), TEN, BATCH)

    def test_to_a_last_layer_alone(self):
        with pytest.raises(NotApplicable):
            RULE.from_layers(LayerFacts((bounded("0", 80, 80),)), OutputFacts((32, 80), None), BATCH)

    def test_to_fewer_than_eight_examples(self):
        with pytest.raises(NotApplicable):
            RULE.from_layers(LayerFacts((bounded("1", 64),)), TEN, BatchFacts(7, {}))


def watched(saturated, hidden=True, losses=None):
    count = len(saturated)
    layer = LayerActivity(
        "1", "tanh", hidden, np.arange(count) * 20, np.full(count, 64), np.full(count, 32),
        np.zeros(count, int), np.array(saturated),
    )  # fmt: skip
    steps = 60
    losses = np.full(steps, 1.1) if losses is None else losses
    norms = np.ones(steps, np.float32)
    history = recorded(
        total_steps=steps, steps=np.arange(steps), losses=losses, loss_known=np.ones(steps, bool), layers=("0",),
        gradient_norms=norms, layer_gradient_norms=norms[:, None], gradient_known=np.ones(steps, bool),
        learning_rates=np.full((steps, 1), 0.1), training_mode=np.ones(steps, np.int8),
        passes=np.ones(steps, np.int64), gradients_zeroed=np.ones(steps, np.int8),
    )  # fmt: skip
    return ActivityFacts((layer,)), history


class TestWhileTraining:
    def test_fires_on_units_that_stay_at_a_bound(self):
        finding = judge(RULE.from_activity, *watched([50, 52, 51, 60]))
        assert (finding.rule, finding.severity, finding.step) == ("saturated-activations", "warning", 60)

    def test_is_silent_where_the_loss_falls(self):
        assert judge(RULE.from_activity, *watched([50] * 5, losses=np.linspace(1.1, 0.1, 60))) is None

    def test_is_silent_on_some_batches(self):
        assert judge(RULE.from_activity, *watched([60, 60, 3, 60])) is None

    def test_is_not_applicable_to_the_last_layer(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_activity, *watched([64] * 5, hidden=False))
