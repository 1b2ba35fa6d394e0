import pytest

from diagnostics.facts.trials import ReproductionFacts
from diagnostics.rules.reproducibility.unseeded_randomness import UnseededRandomness

RULE = UnseededRandomness()


class TestFires:
    def test_where_a_layer_draws_from_a_new_generator(self):
        finding = RULE.from_reproduction(ReproductionFacts(12, 5, "the output of 'noise'", 2.5, 4.125))
        assert (finding.rule, finding.severity, finding.stage) == (
            "unseeded-randomness",
            "note",
            "reproducibility",
        )
        assert finding.evidence == {
            "first": "the output of 'noise'",
            "difference": 2.5,
            "largest": 4.125,
            "differing": 5,
            "compared": 12,
            "unseeded_generators": 0,
        }

    @pytest.mark.parametrize("count", [1, 2])
    def test_where_a_generator_was_made_without_a_seed(self, count):
        assert (
            RULE.from_reproduction(
                ReproductionFacts(12, 12, "the batch (element 0)", 1.0, 2.0, unseeded=count)
            ).severity
            == "note"
        )

    def test_where_an_operation_rounds_in_an_order_of_its_own(self):
        assert (
            RULE.from_reproduction(ReproductionFacts(12, 1, "the gradient of 'a.weight'", 1e-6, 1.0)).severity
            == "note"
        )

    def test_where_the_size_of_the_difference_is_not_known(self):
        assert RULE.from_reproduction(ReproductionFacts(9, 3, "the batch (element 0)")).severity == "note"


def test_it_is_silent_where_both_steps_agree():
    assert RULE.from_reproduction(ReproductionFacts(12)) is None
