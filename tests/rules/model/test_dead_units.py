import numpy as np
import pytest

from diagnostics.facts import ActivationFacts, BatchFacts, LayerFacts, ModelFacts
from diagnostics.rule import NotApplicable
from diagnostics.rules.model.dead_units import DeadUnits

RULE = DeadUnits()
BATCH = BatchFacts(32, {"0": np.zeros((32, 64))})


def relu(layer: str, dead: int, units: int = 64, function: str = "relu") -> ActivationFacts:
    return ActivationFacts(layer, function, units, dead, 0)


class TestFires:
    def test_and_names_the_layers(self):
        finding = RULE.from_layers(LayerFacts((relu("1", 62), relu("3", 20), relu("5", 32, 32))), BATCH)
        assert (finding.rule, finding.severity, finding.stage) == ("dead-units", "warning", "model")
        assert finding.message == (
            '62 of the 64 units of layer "1" and all 32 of "5" are zero for every one of the 32 examples in this '
            "batch. A ReLU at zero passes no gradient, so such units cannot learn, and the layers before "
            "them learn "
            "nothing through them."
        )
        assert finding.fix == (
            "look at what enters layer '1' first: start the biases before it at 0 and its weights as He "
            "et al. do "
            "(kaiming_normal_; he_normal in Keras), or put a normalisation in front; if it happened "
            "while training, "
            "lower the learning rate"
        )
        assert finding.evidence == {
            "layers": {"1": {"dead": 62, "units": 64}, "5": {"dead": 32, "units": 32}},
            "examples": 32,
        }

    def test_and_names_at_most_five(self):
        layers = LayerFacts(tuple(relu(str(number), 64) for number in range(7)))
        assert RULE.from_layers(layers, BATCH).message.startswith(
            'All 64 units of layer "0", all 64 of "1", all 64 of "2", all 64 of "3", all 64 of "4" and nearly all '
            "of 2 more layers are zero for every one of the 32 examples"
        )

    def test_only_as_a_note_in_a_trained_transformer(self):
        model = ModelFacts("OPTForCausalLM", "transformers", 9, 9)
        assert RULE.from_layers(LayerFacts((relu("fc1", 3000, 3072),)), BATCH, model).severity == "note"

    def test_from_nine_tenths_on(self):
        assert RULE.from_layers(LayerFacts((relu("1", 90, 100, "ReLU6"),)), BATCH) is not None
        assert RULE.from_layers(LayerFacts((relu("1", 89, 100, "ReLU6"),)), BATCH) is None


class TestStaysSilent:
    @pytest.mark.parametrize(("dead", "units"), [(25, 32), (74, 128), (42, 64)])
    def test_on_what_healthy_initialisation_shows(self, dead, units):
        assert RULE.from_layers(LayerFacts((relu("1", dead, units),)), BATCH) is None


class TestNotApplicable:
    @pytest.mark.parametrize("layer", [relu("1", 16, 16), relu("1", 64, function="tanh")])
    def test_to_narrow_layers_and_other_functions(self, layer):
        with pytest.raises(NotApplicable, match="needs a layer of at least 32 units that ends in a ReLU"):
            RULE.from_layers(LayerFacts((layer,)), BATCH)

    def test_to_fewer_than_eight_examples(self):
        with pytest.raises(NotApplicable, match="needs a batch of at least 8 examples"):
            RULE.from_layers(LayerFacts((relu("1", 64),)), BatchFacts(7, {}))
