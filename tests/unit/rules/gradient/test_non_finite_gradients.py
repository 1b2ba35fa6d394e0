import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.nonfinite import FrameFacts, OriginFacts, ValueRange
from diagnostics.rules.gradient.non_finite_gradients import NonFiniteGradients
from tests.support.courses import judge, recorded


def origin(**more):
    known = {
        "kind": "gradient", "replayed": True, "noticed": 19, "parameters": ("0.weight",), "num_parameters": 3,
        "loss": 0.5, "batch_size": 16,
    }  # fmt: skip
    return OriginFacts(step=11, **(known | more))


def history(norms):
    count = len(norms)
    return recorded(
        total_steps=count,
        steps=np.arange(count),
        layers=("0",),
        gradient_norms=np.array(norms, np.float32),
        layer_gradient_norms=np.array(norms, np.float32)[:, None],
        gradient_known=np.ones(count, bool),
        learning_rates=np.full((count, 1), 0.1),
        training_mode=np.ones(count, np.int8),
        passes=np.ones(count, np.int64),
        gradients_zeroed=np.ones(count, np.int8),
    )


class TestFires:
    def test_on_a_module_whose_backward_pass_makes_it(self):
        frame = FrameFacts("1", "Norm", "float32", None, ValueRange(0.0, 1.71), ValueRange(0.0, 0.859))
        finding = NonFiniteGradients().from_origin(origin(module="1", module_kind="Norm", frames=(frame,)))
        assert (finding.rule, finding.severity, finding.step) == ("non-finite-gradients", "error", 11)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_a_loss_whose_slope_is_infinite(self):
        assert (
            NonFiniteGradients().from_origin(origin(parameters=("weight",), num_parameters=1)).severity == "error"
        )

    def test_on_steps_that_are_left_out_for_it_again_and_again(self):
        assert NonFiniteGradients().from_origin(origin(left_out=40, loss=None)).severity == "error"

    def test_where_the_step_could_not_be_run_again(self):
        assert (
            NonFiniteGradients()
            .from_origin(origin(replayed=False, reason="no forward pass was recorded"))
            .severity
            == "error"
        )

    def test_where_not_even_the_loss_is_known(self):
        assert (
            NonFiniteGradients().from_origin(origin(kind=None, loss=None, replayed=False, reason="")).severity
            == "error"
        )


class TestSilent:
    @pytest.mark.parametrize("kind", ["input", "loss", "forward", "optimizer step"])
    def test_on_what_began_elsewhere(self, kind):
        assert NonFiniteGradients().from_origin(origin(kind=kind)) is None

    def test_on_a_run_that_stayed_finite(self):
        assert judge(NonFiniteGradients().from_history, history([0.5, 1e20])) is None


def test_not_applicable_where_only_a_broken_loss_is_known():
    with pytest.raises(NotApplicable):
        NonFiniteGradients().from_origin(origin(kind=None, loss=float("nan")))
