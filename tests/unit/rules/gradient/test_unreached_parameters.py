import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.layers import ForgottenLayer, ForgottenLayers
from diagnostics.facts.pipeline import GradientFacts
from diagnostics.rules.gradient.unreached_parameters import UnreachedParameters
from tests.support.courses import judge, recorded

REACHED = {"head.weight": 0.1, "encoder.layer.0.weight": 0.2}


class TestFires:
    def test_on_a_layer_cut_off_from_the_loss(self):
        layer = {f"encoder.layer.1.{i}": 100 for i in range(12)}
        finding = UnreachedParameters().from_gradients(
            GradientFacts(True, REACHED, {**layer, "mask_embedding": 64}, 3000)
        )
        assert (finding.rule, finding.stage) == ("unreached-parameters", "gradient")
        assert finding.severity == "warning"
        assert finding.evidence == {
            "unreached": {**layer, "mask_embedding": 64},
            "unreached_scalars": 1264,
            "num_trainable": 3000,
        }

    def test_on_a_mask_embedding_that_this_batch_did_not_need_as_a_note(self):
        finding = UnreachedParameters().from_gradients(
            GradientFacts(True, REACHED, {"mask_embedding": 64}, 30_000)
        )
        assert finding.severity == "note"

    @pytest.mark.parametrize(("scalars", "severity"), [(99, "note"), (100, "warning")])
    def test_as_a_warning_from_one_percent_on(self, scalars, severity):
        gradients = GradientFacts(True, REACHED, {"pooler.weight": scalars}, 10_000)
        assert UnreachedParameters().from_gradients(gradients).severity == severity

    def test_on_the_pooler_of_a_small_bert_as_a_note(self):
        bert = {"bert.pooler.dense.weight": 2304, "bert.pooler.dense.bias": 48}
        for unreached, severity in ((bert, "note"), ({**bert, "head.weight": 1}, "warning")):
            gradients = GradientFacts(True, REACHED, unreached, 25_201)
            assert UnreachedParameters().from_gradients(gradients).severity == severity


def test_silent_when_every_parameter_gets_a_gradient_even_of_zero():
    gradients = GradientFacts(True, {"weight": 0.3, "bias": 0.0}, {}, 12)
    assert UnreachedParameters().from_gradients(gradients) is None


def test_not_applicable_where_no_gradient_has_its_own_rule():
    with pytest.raises(NotApplicable):
        UnreachedParameters().from_gradients(GradientFacts(False, {}, {"weight": 3}, 3))


def history(silent=("encoder",), layers=("encoder", "head"), steps=60, **changes):
    """A run in which the layers named as silent get no gradient, and the others learn."""
    learns = np.array([name not in silent for name in layers])
    norms = np.tile(learns.astype(np.float32), (steps, 1))
    facts = {
        "total_steps": steps,
        "steps": np.arange(steps),
        "layers": tuple(layers),
        "gradient_norms": np.linalg.norm(norms, axis=1),
        "layer_gradient_norms": norms,
        "gradient_known": np.ones(steps, bool),
        "learning_rates": np.full((steps, 1), 0.1),
        "training_mode": np.ones(steps, np.int8),
        "passes": np.ones(steps, int),
        "gradients_zeroed": np.ones(steps, np.int8),
        "sampled_steps": np.arange(0, steps, 20),
        "update_ratios": np.tile(np.float32(1e-3) * learns, (3, 1)),
        "weight_norms": np.float32(5) + np.outer(np.arange(3), learns).astype(np.float32),
    }
    return recorded(**(facts | changes))


def decaying(updates=(1e-4, 1e-4, 0.5e-4), norms=(5.0, 4.9, 4.8), reached=True):
    """A run in which the encoder gets gradients of 0, and a learning rate that falls to a half."""
    rates = np.where(np.arange(60) < 40, 0.1, 0.05)[:, None]
    ratios = np.stack([np.array(updates), np.full(3, 1e-3)], 1).astype(np.float32)
    weights = np.stack([np.array(norms), np.arange(5, 8)], 1).astype(np.float32)
    known = {"learning_rates": rates, "update_ratios": ratios, "weight_norms": weights}
    return history(**known, reached=np.array([reached, True]))


class TestFiresWhileTraining:
    def test_on_an_encoder_that_never_had_a_gradient(self):
        finding = judge(UnreachedParameters().from_history, history())
        assert (finding.rule, finding.severity, finding.step) == ("unreached-parameters", "warning", 59)
        assert json.loads(json.dumps(finding.evidence)) == {"layers": ["encoder"], "num_layers": 2, "steps": 60}

    def test_on_many_layers_of_which_five_are_named(self):
        silent = [f"encoder.{number}" for number in range(8)]
        assert judge(UnreachedParameters().from_history, history(silent, [*silent, "head"])).severity == "warning"

    def test_on_one_idle_layer_of_many_as_a_note(self):
        layers = ["pooler", *(f"layer.{number}" for number in range(10))]
        assert judge(UnreachedParameters().from_history, history(["pooler"], layers)).severity == "note"

    def test_on_gradients_of_0_which_are_no_missing_path(self):
        layers = ["stem", "body", "spare_head", "head"]
        reached = np.array([True, True, False, True])
        finding = judge(UnreachedParameters().from_history, history(layers[:3], layers, reached=reached))
        assert finding.severity == "warning"
        assert finding.evidence["without_a_path"] == ["spare_head"]

    def test_on_gradients_of_0_and_weights_that_only_decay(self):
        finding = judge(UnreachedParameters().from_history, decaying())
        assert finding.severity == "warning"
        assert "except by weight decay" in finding.message

    def test_on_the_upper_layer_of_a_stack_whose_first_state_is_read(self):
        layers = ["embedding", "lstm layer 1", "lstm layer 2", "fc"]
        reached = np.ones(4, bool)
        finding = judge(UnreachedParameters().from_history, history(layers[2:3], layers, reached=reached))
        assert finding.severity == "warning"


class TestSilentWhileTraining:
    def test_where_every_layer_learns(self):
        assert judge(UnreachedParameters().from_history, history(())) is None

    def test_on_an_expert_that_one_batch_used(self):
        norms = history().gradients.layer_norms.copy()
        norms[17, 0] = 0.2
        assert judge(UnreachedParameters().from_history, history(layer_gradient_norms=norms)) is None

    def test_on_a_layer_that_no_optimizer_holds(self):
        ratios = history().updates.ratios.copy()
        ratios[:, 0] = np.nan
        assert judge(UnreachedParameters().from_history, history(update_ratios=ratios)) is None

    def test_on_a_layer_with_sparse_gradients_which_are_not_measured_but_move_it(self):
        ratios = history().updates.ratios.copy()
        ratios[:, 0] = 1e-4
        assert judge(UnreachedParameters().from_history, history(update_ratios=ratios)) is None

    def test_on_a_target_network_that_is_copied_between_the_steps(self):
        weights = history().updates.weight_norms.copy()
        weights[2, 0] = 5.5
        assert judge(UnreachedParameters().from_history, history(weight_norms=weights)) is None

    @pytest.mark.parametrize(
        "run",
        [{"updates": (1e-4, 1e-4, 1e-4)}, {"norms": (5.0, 4.9, 5.1)}, {"reached": False}],
        ids=["updates that do not follow the rate", "weights that grow", "no path"],
    )
    def test_on_weights_that_something_else_moves(self, run):
        assert judge(UnreachedParameters().from_history, decaying(**run)) is None


class TestNotApplicableWhileTraining:
    def test_before_enough_steps_had_a_gradient(self):
        with pytest.raises(NotApplicable):
            judge(UnreachedParameters().from_history, history(steps=40))

    def test_without_a_look_at_the_weights(self):
        two = np.ones((2, 2))
        run = history(sampled_steps=np.arange(2), update_ratios=two, weight_norms=two)
        with pytest.raises(NotApplicable):
            judge(UnreachedParameters().from_history, run)


def forgotten(like_an_output=False):
    layer = ForgottenLayer("dense", "Dense", 192, "input_layer", like_an_output)
    return UnreachedParameters().from_forgotten(ForgottenLayers((layer,)))


def test_names_a_layer_that_is_part_of_no_model():
    finding = forgotten()
    assert finding.severity == "warning"
    assert finding.evidence == {"layers": ["dense"], "scalars": 192}


def test_notes_one_that_may_have_been_the_output():
    assert forgotten(like_an_output=True).severity == "note"
