import pytest

from diagnostics.facts import GradientFacts
from diagnostics.rule import NotApplicable
from diagnostics.rules.gradient.unreached_parameters import UnreachedParameters

REACHED = {"head.weight": 0.1, "encoder.layer.0.weight": 0.2}


class TestFires:
    def test_on_a_layer_cut_off_from_the_loss(self):
        layer = {f"encoder.layer.1.{i}": 100 for i in range(12)}
        finding = UnreachedParameters().from_gradients(
            GradientFacts(True, REACHED, {**layer, "mask_embedding": 64}, 3000)
        )
        assert (finding.rule, finding.stage) == ("unreached-parameters", "gradient")
        assert finding.severity == "warning"
        assert finding.message == (
            "13 of the 15 trainable parameters get no gradient from this batch: encoder.layer.1.* (12 "
            "parameters) and mask_embedding. They hold 1,264 of the 3,000 trainable scalars (42.1 %) and stay "
            "as initialised: the loss does not depend on them."
        )
        assert finding.fix == (
            "use their result in the loss, without .detach() or torch.no_grad() on the way; if they are idle on "
            "purpose, freeze them: parameter.requires_grad_(False)"
        )
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
        assert finding.message == (
            "1 of the 3 trainable parameters gets no gradient from this batch: mask_embedding. It holds 64 of "
            "the 30,000 trainable scalars (0.213 %) and stays as initialised: the loss does not depend on it."
        )

    @pytest.mark.parametrize(("scalars", "severity"), [(99, "note"), (100, "warning")])
    def test_as_a_warning_from_one_percent_on(self, scalars, severity):
        gradients = GradientFacts(True, REACHED, {"pooler.weight": scalars}, 10_000)
        assert UnreachedParameters().from_gradients(gradients).severity == severity


def test_silent_when_every_parameter_gets_a_gradient_even_of_zero():
    gradients = GradientFacts(True, {"weight": 0.3, "bias": 0.0}, {}, 12)
    assert UnreachedParameters().from_gradients(gradients) is None


def test_not_applicable_where_no_gradient_has_its_own_rule():
    with pytest.raises(NotApplicable, match="needs a loss that reaches at least one parameter"):
        UnreachedParameters().from_gradients(GradientFacts(False, {}, {"weight": 3}, 3))
