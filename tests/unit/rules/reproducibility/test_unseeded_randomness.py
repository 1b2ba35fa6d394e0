import pytest

from diagnostics.facts.trials import ReproductionFacts
from diagnostics.rules.reproducibility.unseeded_randomness import UnseededRandomness

RULE = UnseededRandomness()
START = (
    "One training step, run twice with the same weights, rows and seeds, gave different results. The first "
    "difference is in "
)


class TestFires:
    def test_where_a_layer_draws_from_a_new_generator(self):
        finding = RULE.from_reproduction(ReproductionFacts(12, 5, "the output of 'noise'", 2.5, 4.125))
        assert (finding.rule, finding.severity, finding.stage) == (
            "unseeded-randomness",
            "note",
            "reproducibility",
        )
        assert finding.message == START + (
            "the output of 'noise' (up to 2.5, in values of up to 4.1); after it 4 of the 12 compared tensors "
            "differ. Its random numbers come from a source without a fixed seed, such as a new generator or the "
            "clock."
        )
        assert finding.fix == (
            "draw from PyTorch's own generator, torch.randn_like(states), which torch.manual_seed seeds"
        )
        assert finding.evidence == {
            "first": "the output of 'noise'",
            "difference": 2.5,
            "largest": 4.125,
            "differing": 5,
            "compared": 12,
            "unseeded_generators": 0,
        }

    @pytest.mark.parametrize(("count", "counted"), [(1, "1 generator"), (2, "2 generators")])
    def test_where_a_generator_was_made_without_a_seed(self, count, counted):
        finding = RULE.from_reproduction(ReproductionFacts(12, 12, "the batch (0)", 1.0, 2.0, unseeded=count))
        assert f"The program has {counted} created without a seed (or with one as long as those" in finding.message
        assert finding.fix == "create the generator once, with a seed: self.random = np.random.default_rng(seed)"

    def test_where_an_operation_rounds_in_an_order_of_its_own(self):
        finding = RULE.from_reproduction(ReproductionFacts(12, 1, "the gradient of 'a.weight'", 1e-6, 1.0))
        assert finding.message == START + (
            "the gradient of 'a.weight' (up to 1e-06, in values of up to 1). A difference this small comes from "
            "an operation without a fixed order of summation."
        )
        assert finding.fix == (
            "torch.use_deterministic_algorithms(True), which replaces the operation or names it in an error"
        )

    def test_where_the_size_of_the_difference_is_not_known(self):
        assert (
            "is in the batch (0); after it"
            in RULE.from_reproduction(ReproductionFacts(9, 3, "the batch (0)")).message
        )


def test_it_is_silent_where_both_steps_agree():
    assert RULE.from_reproduction(ReproductionFacts(12)) is None
