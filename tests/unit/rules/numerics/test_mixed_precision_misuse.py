from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import ScaledClipFacts, StepOrderFacts
from diagnostics.facts.where import Where
from diagnostics.rules.numerics.mixed_precision_misuse import MixedPrecisionMisuse
from tests.support.courses import judge

RULE = MixedPrecisionMisuse()


class TestScaledGradientsClipped:
    CLIPS = ScaledClipFacts(
        "clip_grad_norm_", 1.0, 20, 20, np.full(20, 131072.0), np.full(20, 65536.0), Where("t.py", 9, "main")
    )

    def test_are_found(self):
        finding = judge(RULE.from_clips, self.CLIPS)
        assert (finding.rule, finding.severity, finding.where.line) == ("mixed-precision-misuse", "warning", 9)

    def test_of_single_values_too(self):
        assert (
            judge(
                RULE.from_clips, replace(self.CLIPS, function="clip_grad_value_", norms=np.full(20, np.nan))
            ).severity
            == "warning"
        )

    @pytest.mark.parametrize(
        "known",
        [{"scaled": 0}, {"limit": 65536.0}, {"norms": np.full(20, 0.5)}, {"scales": np.full(20, 1.0)}],
        ids=["unscaled before", "limit scaled too", "nothing clipped", "a scale of 1"],
    )
    def test_are_left_alone(self, known):
        assert judge(RULE.from_clips, replace(self.CLIPS, **known)) is None

    def test_are_not_judged_after_two_steps(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_clips, replace(self.CLIPS, steps=2, scaled=2))


class TestSteps:
    def judge(self, scaled=120, unscaled=0, steps=120):
        facts = StepOrderFacts(steps, 0, 0, steps, steps, True, scaled=scaled, unscaled=unscaled)
        return MixedPrecisionMisuse().from_steps(facts)

    def test_of_the_optimizer_on_a_scaled_loss(self):
        finding = self.judge()
        assert finding.severity == "warning"

    def test_of_the_scaler_or_divided_by_hand_are_right(self):
        assert self.judge(unscaled=120) is None
        assert self.judge(unscaled=-1) is None

    def test_without_a_scaler_are_not_judged(self):
        with pytest.raises(NotApplicable):
            self.judge(scaled=0)
