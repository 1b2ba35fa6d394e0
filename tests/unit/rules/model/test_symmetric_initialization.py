import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.layers import EqualUnitsFacts
from diagnostics.facts.pipeline import GradientFacts
from diagnostics.facts.trials import OverfitFacts
from diagnostics.rules.model.symmetric_initialization import SymmetricInitialization
from tests.support.courses import history, judge

RULE = SymmetricInitialization()


def trained(*symmetric, steps=30):
    return OverfitFacts((1.1,) * steps, (1e-3,), 8, 0.0, symmetric)


class TestFires:
    def test_on_one_weight(self):
        finding = RULE.from_overfit(trained("hidden.weight"))
        assert (finding.rule, finding.stage, finding.severity) == ("symmetric-initialization", "model", "error")
        assert finding.evidence == {"weights": ["hidden.weight"], "steps": 30}

    def test_on_several_weights_and_names_the_first_few(self):
        names = tuple(f"layers.{i}.weight" for i in range(7))
        finding = RULE.from_overfit(trained(*names, steps=10))
        assert finding.evidence["weights"] == list(names)

    def test_and_words_the_fix_for_keras(self):
        assert RULE.from_overfit(trained("dense/kernel")).severity == "error"

    def test_on_weights_that_get_a_gradient_of_zero(self):
        gradient = GradientFacts(True, {"hidden.weight": 0.0, "head.bias": 0.4}, {}, 9)
        assert RULE.from_overfit(trained("hidden.weight"), gradient) is not None


class TestStaysSilent:
    def test_where_training_moved_the_units_apart(self):
        assert RULE.from_overfit(trained()) is None

    def test_on_weights_that_are_frozen_or_that_the_gradient_does_not_reach(self):
        gradient = GradientFacts(True, {"head.weight": 0.4}, {"unused.weight": 9}, 9)
        assert RULE.from_overfit(trained("unused.weight", "frozen.weight"), gradient) is None


def test_needs_a_copy_that_was_trained_at_all():
    # A pretrained model that knows the batch: not one step was taken, and LoRA's B is still zero.
    with pytest.raises(NotApplicable):
        RULE.from_overfit(trained("lora_B.weight", steps=1))


class TestInARun:
    def test_fires_on_units_that_training_left_equal(self):
        finding = judge(RULE.from_run, EqualUnitsFacts(("fc1.weight",)), history(np.ones(300)))
        assert finding.evidence == {"weights": ["fc1.weight"], "steps": 300}

    def test_stays_silent_where_no_weight_is_left(self):
        assert judge(RULE.from_run, EqualUnitsFacts(()), history(np.ones(300))) is None

    def test_needs_some_steps(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_run, EqualUnitsFacts(("fc1.weight",)), history(np.ones(9)))
