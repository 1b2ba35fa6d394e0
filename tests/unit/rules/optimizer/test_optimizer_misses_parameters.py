import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, UntrainedFacts
from diagnostics.facts.loss_graph import LeafFacts
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

    def test_an_optimizer_of_a_frozen_model_has_nothing_to_train(self):
        frozen = ModelFacts("PeftModel", "transformers", 1200, 0)
        finding = OptimizerMissesParameters().from_optimizer(OptimizerFacts("AdamW", (1e-3,), {}, 0, 0), frozen)
        assert (finding.severity, finding.evidence["num_trainable"]) == ("error", 0)

    def test_inputs_of_a_frozen_model_may_be_what_is_trained(self):
        frozen = ModelFacts("Classifier", "torch", 1200, 0)
        with pytest.raises(NotApplicable, match="trainable parameters"):
            OptimizerMissesParameters().from_optimizer(OptimizerFacts("Adam", (1e-3,), {}, 0, 1), frozen)

    @pytest.mark.parametrize("foreign", [0, 1])
    def test_an_optimizer_of_frozen_parameters_says_so(self, foreign):
        finding = judge(WHOLE, held=0, foreign=foreign, frozen=2)
        assert (finding.severity, finding.evidence["frozen"]) == ("error", 2)


class TestSomeParametersMissing:
    def test_a_layer_replaced_after_the_optimizer_was_built_is_a_warning(self):
        finding = judge({"fc.weight": 90, "fc.bias": 10}, held=4, foreign=2)
        assert finding.severity == "warning"

    def test_a_small_head_replaced_after_the_optimizer_was_built_is_a_warning(self):
        assert judge({"head.weight": 1}, held=4, foreign=1).severity == "warning"

    def test_a_forgotten_scale_is_a_note(self):
        finding = judge({"scale": 1}, held=4, foreign=0)
        assert finding.severity == "note"

    @pytest.mark.parametrize(("scalars", "severity"), [(9, "note"), (10, "warning")])
    def test_one_percent_makes_it_a_warning(self, scalars, severity):
        assert judge({"norm.weight": scalars}, held=4, foreign=0).severity == severity


class TestStaysSilent:
    def test_when_it_holds_everything(self):
        assert judge({}, held=6, foreign=0) is None

    def test_when_it_also_holds_a_second_model_or_a_loss_that_learns(self):
        assert judge({}, held=6, foreign=40) is None


def test_not_applicable_to_a_model_that_is_frozen():
    with pytest.raises(NotApplicable):
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

    def test_an_encoder_that_no_optimizer_holds_is_a_warning(self):
        finding = judge_leaves(other_models={"Encoder": 900})
        assert finding.severity == "warning"

    def test_a_loss_with_weights_that_no_optimizer_holds_is_a_warning(self):
        finding = judge_leaves(heads={"SplitCrossEntropy": 100})
        assert finding.severity == "warning"
        assert finding.evidence["heads"] == {"SplitCrossEntropy": 100}

    def test_a_layer_that_is_made_in_forward_is_a_warning(self):
        finding = judge_leaves(vanished={"Linear": 100})
        assert finding.severity == "warning"
        assert finding.evidence["vanished"] == {"Linear": 100}

    def test_a_variable_that_keras_does_not_track_is_a_warning(self):
        finding = judge_leaves(untracked={"linear/w": 90, "linear/b": 10})
        assert finding.severity == "warning"
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


class TestRandomWeightsThatAreFrozen:
    def judge(self, untrained, trained=True):
        return OptimizerMissesParameters().from_untrained(DependenceFacts(trained=trained, untrained=untrained))

    def test_of_the_last_layer_are_a_warning(self):
        weights = {"classifier.dense.weight": 4096, "classifier.out_proj.weight": 320}
        finding = self.judge(UntrainedFacts(weights, last=True))
        assert finding.severity == "warning"
        assert finding.evidence == {"weights": weights, "scalars": 4416, "last": True}
        assert "task_type" in finding.for_library("peft").fix

    def test_before_a_trained_layer_are_a_note(self):
        assert self.judge(UntrainedFacts({"bert.pooler.dense.weight": 4096}, last=False)).severity == "note"

    def test_silent_without_any(self):
        assert self.judge(None) is None

    def test_not_applicable_before_the_training(self):
        with pytest.raises(NotApplicable):
            self.judge(None, trained=False)
