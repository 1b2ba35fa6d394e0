import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.nonfinite import FrameFacts, OriginFacts, ValueRange
from diagnostics.rules.numerics.non_finite_activations import NonFiniteActivations
from tests.support.courses import judge, recorded

FRAMES = (
    FrameFacts("0", "Linear", "float16", ValueRange(1e-3, 0.5), ValueRange(0.01, 3.0), ValueRange(0.1, 7.25)),
    FrameFacts("1", "Tanh", "float16", None, ValueRange(0.1, 7.25), ValueRange(0.1, 1.0)),
    FrameFacts(
        "2", "Linear", "float16", ValueRange(1.0, 6e4), ValueRange(0.1, 1.0), ValueRange(2.0, 6.5e4, nan=1, inf=3)
    ),
)


def origin(**more):
    known = {
        "kind": "forward", "replayed": True, "noticed": 39, "module": "2", "module_kind": "Linear",
        "num_parameters": 6, "frames": FRAMES, "rows": (4, 9), "batch_size": 16, "learning_rate": 0.01,
    }  # fmt: skip
    return OriginFacts(step=38, **(known | more))


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
    def test_on_a_module_that_overflows(self):
        finding = NonFiniteActivations().from_origin(origin())
        assert (finding.rule, finding.severity, finding.stage) == ("non-finite-activations", "error", "numerics")
        assert finding.step == 38
        assert finding.evidence["frames"][-1] == (
            "2 Linear float16: weights 1 to 6e+04; inputs 0.1 to 1; outputs 2 to 6.5e+04, 1 NaN, 3 inf"
        )
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_one_that_makes_nan_without_growing(self):
        frame = FrameFacts("", "Net", "float32", None, ValueRange(0.0, 1.0), ValueRange(0.0, 1.0, nan=2))
        assert (
            NonFiniteActivations()
            .from_origin(origin(module="", module_kind="Net", frames=(frame,), rows=()))
            .severity
            == "error"
        )

    def test_on_one_with_a_long_name_in_full_precision(self):
        name = "distilbert.transformer.layer.1.ffn.lin2"
        frame = FrameFacts(
            name,
            "Linear",
            "float32",
            ValueRange(4e-4, 3e38),
            ValueRange(5e-6, 0.322),
            ValueRange(2e36, 3e38, 0, 5),
        )
        assert (
            NonFiniteActivations().from_origin(origin(module=name, frames=(frame,), rows=())).severity == "error"
        )

    def test_saying_when_only_the_present_state_could_be_searched(self):
        assert (
            NonFiniteActivations()
            .from_origin(origin(replayed=False, frames=(), rows=(), reason="the weights take more than 512 MiB"))
            .severity
            == "error"
        )


class TestSilent:
    @pytest.mark.parametrize("kind", ["input", "loss", "gradient", "optimizer step"])
    def test_on_what_began_elsewhere(self, kind):
        assert NonFiniteActivations().from_origin(origin(kind=kind)) is None

    def test_on_a_run_that_stayed_finite(self):
        assert judge(NonFiniteActivations().from_history, history([0.5, 1e20])) is None


class TestNotApplicable:
    def test_where_only_the_step_is_known(self):
        with pytest.raises(NotApplicable):
            NonFiniteActivations().from_origin(origin(kind=None, reason="the batch was modified in place"))

    def test_without_gradients(self):
        with pytest.raises(NotApplicable, match="needs the gradients of the steps"):
            judge(NonFiniteActivations().from_history, history([]))

    def test_on_a_run_that_went_wrong_in_an_unknown_place(self):
        with pytest.raises(NotApplicable):
            judge(NonFiniteActivations().from_history, history([0.5, np.nan]))
