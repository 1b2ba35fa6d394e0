import pytest

from diagnostics.facts import ActivationFacts, BatchFacts, LayerFacts, OutputFacts
from diagnostics.rule import NotApplicable
from diagnostics.rules.model.saturated_activations import SaturatedActivations

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
        assert finding.message == (
            '46 of the 64 units of layer "1" (tanh) and all 32 of "5" (hard_sigmoid) sit at a bound of the '
            "function for nearly all of the 32 examples in this batch. There the function is flat and passes "
            "almost no gradient, so what stands before it hardly learns. Usually the inputs are not "
            "scaled, or the "
            "weights "
            "start too large."
        )
        assert finding.fix == (
            "look at what enters layer '1' first: scale the inputs to about mean 0 and standard "
            "deviation 1, start "
            "the weights as Glorot and Bengio do (xavier_uniform_; glorot_uniform in Keras), or put a "
            "normalisation "
            "in front"
        )
        assert finding.evidence == {
            "layers": {
                "1": {"function": "tanh", "saturated": 46, "units": 64},
                "5": {"function": "hard_sigmoid", "saturated": 32, "units": 32},
            },
            "examples": 32,
        }

    def test_and_names_at_most_five(self):
        layers = LayerFacts(tuple(bounded(str(number), 64) for number in range(6)))
        assert '"4" (tanh) and most of 1 more layer sit at a bound' in RULE.from_layers(layers, TEN, BATCH).message

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
        with pytest.raises(NotApplicable, match="needs a hidden layer of at least 16 units that ends in tanh or"):
            RULE.from_layers(LayerFacts((layer,)), TEN, BATCH)

    def test_to_a_last_layer_alone(self):
        with pytest.raises(NotApplicable, match="needs a hidden layer of at least 16 units that ends in tanh or"):
            RULE.from_layers(LayerFacts((bounded("0", 80, 80),)), OutputFacts((32, 80), None), BATCH)

    def test_to_fewer_than_eight_examples(self):
        with pytest.raises(NotApplicable, match="needs a batch of at least 8 examples"):
            RULE.from_layers(LayerFacts((bounded("1", 64),)), TEN, BatchFacts(7, {}))
