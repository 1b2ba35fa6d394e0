import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.rules.model.targets_out_of_reach import TargetsOutOfReach

RULE = TargetsOutOfReach()


def judge(targets, activation="sigmoid", kind="mean_squared_error"):
    targets = None if targets is None else np.asarray(targets, float)
    batch = BatchFacts(8, {"0": np.zeros((8, 3))}, targets, "1")
    return RULE.from_batch(batch, OutputFacts((8, 1), None, last_activation=activation), LossFacts(1.0, kind, 0.5))


class TestFires:
    def test_on_prices_behind_a_sigmoid(self):
        finding = judge([3, 20, 41, 57, 63, 80, 99, 103])
        assert (finding.rule, finding.severity) == ("targets-out-of-reach", "error")
        assert finding.message == (
            "The model ends in sigmoid, which gives 0 to 1, and the targets run from 3 to 103: 100% of them are "
            "out of reach. The answers saturate at the bound, where they get no gradient."
        )
        assert finding.fix == "leave out the last sigmoid"
        assert finding.for_library("keras").fix == "keras.layers.Dense(units)  # no activation"

    @pytest.mark.parametrize(
        ("activation", "targets"),
        [("relu", [-1.2, -0.4, 0.1, 0.9]), ("tanh", [-2.5, 0.3, 1.9]), ("softmax", [0.0, 3.0, 5.0])],
    )
    def test_on_other_functions_that_have_bounds(self, activation, targets):
        assert judge(targets, activation) is not None

    def test_on_labels_of_minus_one_under_binary_cross_entropy(self):
        finding = judge([-1, 1, 1, -1], "linear", "binary_cross_entropy")
        assert finding.message == (
            "50% of the targets lie outside of 0 to 1: they run from -1 to 1. Binary cross entropy has no "
            "minimum for them: it falls below 0 without end, and the logits grow with it."
        )
        assert finding.fix == "labels = (labels + 1) / 2  # -1 and 1 become 0 and 1"

    def test_on_pixels_under_binary_cross_entropy(self):
        finding = judge([0, 12, 255, 80], None, "binary_cross_entropy")
        assert (finding.fix, len(finding.alternatives)) == ("scale the targets to 0..1, as pixels by / 255", 1)


class TestSilent:
    @pytest.mark.parametrize(
        ("targets", "activation", "kind"),
        [
            ([0.0, 0.2, 1.0], "sigmoid", "mean_squared_error"),
            ([-0.04, 0.2, 1.06], "sigmoid", "mean_squared_error"),
            ([0.0, 4.0, 90.0], "relu", "mean_squared_error"),
            ([-0.01, 0.4, 3.0], "relu", "mean_absolute_error"),
            ([-500.0, 900.0], "linear", "mean_squared_error"),
            ([-0.98, 1.0], "tanh", "mean_squared_error"),
            ([0.05, 0.95], None, "binary_cross_entropy"),
            ([0.0, 1.0], "sigmoid", "binary_cross_entropy"),
        ],
    )
    def test_on_targets_that_can_be_reached(self, targets, activation, kind):
        assert judge(targets, activation, kind) is None

    def test_on_one_outlier(self):
        assert judge([0.5] * 19 + [7.0]) is None


@pytest.mark.parametrize(
    ("targets", "activation", "kind", "reason"),
    [
        (None, "sigmoid", "mean_squared_error", "needs targets that are numbers"),
        ([3.0], None, "mean_squared_error", "needs to know the function that the model ends in"),
        ([3.0], "sigmoid", "other", "needs a squared or absolute error, or binary cross entropy"),
        ([3.0], "softmax", "cross_entropy", "needs a squared or absolute error, or binary cross entropy"),
    ],
)
def test_not_applicable_without_its_evidence(targets, activation, kind, reason):
    with pytest.raises(NotApplicable, match=reason):
        judge(targets, activation, kind)
