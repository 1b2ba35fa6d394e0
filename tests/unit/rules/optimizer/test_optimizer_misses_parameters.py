import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.loss import LeafFacts
from diagnostics.facts.pipeline import ModelFacts, OptimizerFacts
from diagnostics.rules.optimizer.optimizer_misses_parameters import OptimizerMissesParameters

MODEL = ModelFacts("Classifier", "torch", 1200, 1000)
WHOLE = {"fc.weight": 990, "fc.bias": 10}


def judge(missing, held, foreign, frozen=0):
    return OptimizerMissesParameters().from_optimizer(
        OptimizerFacts("AdamW", (1e-3,), missing, held, foreign, frozen=frozen), MODEL
    )


class TestAnotherModel:
    def test_an_optimizer_of_other_tensors_alone_is_an_error(self):
        finding = judge(WHOLE, held=0, foreign=4)
        assert (finding.rule, finding.stage) == ("optimizer-misses-parameters", "optimizer")
        assert finding.severity == "error"
        assert finding.message == (
            "The optimizer (AdamW) holds none of the model's 2 trainable parameters. It holds 4 tensors "
            "from elsewhere: of another model, or of this one before it was replaced. Its steps cannot "
            "change this model."
        )
        assert finding.fix == "optimizer = AdamW(model.parameters(), ...)  # after the model is complete"
        assert finding.evidence == {
            "held": 0,
            "missing": WHOLE,
            "missing_scalars": 1000,
            "num_trainable": 1000,
            "foreign": 4,
        }

    def test_an_empty_optimizer_is_an_error_too(self):
        finding = judge({"weight": 1000}, held=0, foreign=0)
        assert finding.severity == "error"
        assert finding.message == (
            "The optimizer (AdamW) holds none of the model's 1 trainable parameter. It holds no "
            "parameters at all. Its steps cannot change this model."
        )

    @pytest.mark.parametrize(
        ("foreign", "holds"),
        [
            (0, "It holds 2 parameters of it that are frozen. Its steps"),
            (1, "It holds 2 parameters of it that are frozen and 1 tensor from elsewhere. Its steps"),
        ],
    )
    def test_an_optimizer_of_frozen_parameters_says_so(self, foreign, holds):
        finding = judge(WHOLE, held=0, foreign=foreign, frozen=2)
        assert (finding.severity, finding.evidence["frozen"]) == ("error", 2)
        assert holds in finding.message


class TestSomeParametersMissing:
    def test_a_layer_replaced_after_the_optimizer_was_built_is_a_warning(self):
        finding = judge({"fc.weight": 90, "fc.bias": 10}, held=4, foreign=2)
        assert finding.severity == "warning"
        assert finding.message == (
            "The optimizer (AdamW) lacks 2 of the model's 6 trainable parameters: fc.* (2 parameters). They are "
            "100 of 1,000 trainable scalars (10 %), and no step will change them. It also holds 2 tensors that "
            "the model does not have: was a layer replaced after the optimizer was built?"
        )
        assert (finding.fix, *finding.alternatives) == (
            "optimizer = AdamW(model.parameters(), ...)  # after the model is complete",
            "if they should stay frozen: parameter.requires_grad_(False)",
        )

    def test_a_small_head_replaced_after_the_optimizer_was_built_is_a_warning(self):
        assert judge({"head.weight": 1}, held=4, foreign=1).severity == "warning"

    def test_a_forgotten_scale_is_a_note(self):
        finding = judge({"scale": 1}, held=4, foreign=0)
        assert finding.severity == "note"
        assert finding.message == (
            "The optimizer (AdamW) lacks 1 of the model's 5 trainable parameters: scale. It is 1 of 1,000 "
            "trainable scalars (0.1 %), and no step will change it."
        )

    @pytest.mark.parametrize(("scalars", "severity"), [(9, "note"), (10, "warning")])
    def test_one_percent_makes_it_a_warning(self, scalars, severity):
        assert judge({"norm.weight": scalars}, held=4, foreign=0).severity == severity


class TestStaysSilent:
    def test_when_it_holds_everything(self):
        assert judge({}, held=6, foreign=0) is None

    def test_when_it_also_holds_a_second_model_or_a_loss_that_learns(self):
        assert judge({}, held=6, foreign=40) is None


def test_not_applicable_to_a_model_that_is_frozen():
    with pytest.raises(NotApplicable, match="needs a model with trainable parameters"):
        judge({}, held=0, foreign=4)


def judge_leaves(unregistered=None, other_models=None, trained=900, vanished=None, heads=None, untracked=None):
    optimizer = OptimizerFacts("Adam", (1e-3,), {}, 2, 0)
    leaves = LeafFacts(
        unregistered or {}, other_models or {}, trained, vanished or {}, heads or {}, untracked or {}
    )
    return OptimizerMissesParameters().from_leaves(leaves, optimizer)


class TestLeaves:
    def test_layers_in_a_python_list_are_a_warning(self):
        finding = judge_leaves({"layers[0].weight": 90, "layers[0].bias": 10})
        assert (finding.rule, finding.severity) == ("optimizer-misses-parameters", "warning")
        assert finding.message == (
            "The loss depends on 2 parameters that the model keeps in a list or dict of Python's: layers[0].* (2 "
            "parameters). `model.parameters()` does not find them there, so no optimizer holds them: 10 % of all "
            "scalars, which get gradients and stay as initialised."
        )
        assert finding.fix == "self.layers = nn.ModuleList([...])  # or nn.ModuleDict, nn.ParameterList"

    def test_an_encoder_that_no_optimizer_holds_is_a_warning(self):
        finding = judge_leaves(other_models={"Encoder": 900})
        assert finding.severity == "warning"
        assert finding.message == (
            "The loss depends on Encoder, which gives the model its input, gets gradients and is in training "
            "mode, and no optimizer holds any of its parameters: 900 scalars, 50 % of those that the loss depends "
            "on. They have the random values that they were made with, and keep them."
        )

    def test_a_loss_with_weights_that_no_optimizer_holds_is_a_warning(self):
        finding = judge_leaves(heads={"SplitCrossEntropy": 100})
        assert finding.severity == "warning"
        assert finding.message == (
            "The loss depends on SplitCrossEntropy, which takes the model's output, gets gradients and is in "
            "training mode, and no optimizer holds any of its parameters: 100 scalars, 10 % of those that the "
            "loss depends on. They have the random values that they were made with, and keep them."
        )
        assert finding.fix == "optimizer = Adam([*model.parameters(), *criterion.parameters()], ...)"
        assert finding.evidence["heads"] == {"SplitCrossEntropy": 100}

    def test_a_layer_that_is_made_in_forward_is_a_warning(self):
        finding = judge_leaves(vanished={"Linear": 100})
        assert finding.severity == "warning"
        assert finding.message == (
            "The model makes a layer of its own within its forward pass (Linear), and the layer is gone when the "
            "pass is over. The loss depends on its 100 weights, 10 % of all scalars that it depends on. No "
            "optimizer holds them, and the next pass has to draw new ones."
        )
        assert finding.fix == "self.layer = nn.Linear(...)  # in __init__, and self.layer(x) in forward"
        assert finding.evidence["vanished"] == {"Linear": 100}

    def test_a_variable_that_keras_does_not_track_is_a_warning(self):
        finding = judge_leaves(untracked={"linear/w": 90, "linear/b": 10})
        assert finding.severity == "warning"
        assert finding.message == (
            "The answers depend on 2 variables of TensorFlow that the layers keep as attributes: linear/* (2 "
            "parameters). Keras 3 tracks variables of its own alone, so `trainable_variables` does not have them: "
            "10 % of all scalars, which the training has left as they were, and which no file of weights holds."
        )
        assert finding.fix.startswith("self.w = self.add_weight(")
        assert finding.evidence["untracked"] == {"linear/w": 90, "linear/b": 10}

    def test_a_few_scalars_are_nothing(self):
        assert judge_leaves(vanished={"Linear": 8}) is None
        assert judge_leaves({"scales[0]": 1}) is None

    def test_silent_where_all_are_trained(self):
        assert judge_leaves() is None


def test_parameters_that_were_unfrozen_later():
    facts = OptimizerFacts("Adam", (1e-3,), {"backbone.weight": 900, "backbone.bias": 9}, 2, 0, unfrozen=2)
    finding = OptimizerMissesParameters().from_optimizer(facts, MODEL)
    assert finding.severity == "warning"
    assert finding.message == (
        "2 parameters that were frozen at the start require gradients now and get them, but the optimizer (Adam) "
        "does not hold them: backbone.* (2 parameters). No step will change them."
    )
    assert finding.fix.startswith("optimizer.add_param_group(")
