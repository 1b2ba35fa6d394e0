import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.pipeline import LossInputFacts
from diagnostics.rules.numerics.loss_out_of_range import LossOutOfRange
from tests.support.courses import history, judge

RULE = LossOutOfRange()
VERDICTS = Verdicts(frozenset(), frozenset())
DIVERGENCE = LossInputFacts("kl_div", -1.73, mass=6.2, lowest_input=0.01, highest_input=0.8)
BINARY = LossInputFacts("binary_cross_entropy_with_logits", 0.7, lowest_target=-1.0, highest_target=1.0)


class TestFires:
    def test_on_a_divergence_of_probabilities(self):
        finding = RULE.from_first_step(DIVERGENCE)
        assert (finding.rule, finding.severity, finding.step) == ("loss-out-of-range", "error", 0)

    def test_on_a_binary_cross_entropy_that_falls_without_end(self):
        assert judge(RULE.from_course, history(np.linspace(0.7, -5870, 100)), BINARY, VERDICTS).severity == "error"

    def test_on_outputs_that_are_no_distribution(self):
        given = LossInputFacts("kl_divergence", 3.1, mass=5.5, target_mass=1.0)
        assert judge(RULE.from_course, history(np.linspace(3.1, -9.0, 100)), given, VERDICTS).severity == "error"

    def test_on_targets_that_are_no_distribution(self):
        assert (
            RULE.from_first_step(LossInputFacts("kl_divergence", -2.0, mass=1.0, target_mass=0.02)).severity
            == "error"
        )


class TestSilent:
    @pytest.mark.parametrize(
        "given",
        [
            LossInputFacts("kl_div", -1e-6, mass=1.0, lowest_input=-9.0, highest_input=-0.1),
            LossInputFacts("kl_div", -0.3, mass=1.0, lowest_input=-9.0, highest_input=-0.1),
            LossInputFacts("kl_divergence", -0.3, mass=1.0, target_mass=1.0),
            LossInputFacts("kl_div", 0.3, mass=4.0, lowest_input=-2.0, highest_input=2.0),
            LossInputFacts("binary_crossentropy", 0.5, lowest_target=0.0, highest_target=1.0),
        ],
        ids=["rounding", "partial targets", "distributions", "not negative", "probabilities"],
    )
    def test_on_right_arguments(self, given):
        assert RULE.from_first_step(given) is None

    def test_on_a_course_above_zero(self):
        assert judge(RULE.from_course, history(np.linspace(0.7, 0.1, 100)), BINARY, VERDICTS) is None


@pytest.mark.parametrize(
    "given", [LossInputFacts("gaussian_nll_loss", -3.0), LossInputFacts("mse_loss", -3.0, weighted=True)]
)
def test_not_applicable_to_losses_that_may_be_negative(given):
    with pytest.raises(NotApplicable):
        RULE.from_first_step(given)
