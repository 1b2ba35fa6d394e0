import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.pipeline import BatchFacts, GradientFacts, LossFacts
from diagnostics.rules.data.non_finite_inputs import NonFiniteInputs

RULE = NonFiniteInputs()
NAN, INF = float("nan"), float("inf")


def features(rows: int = 32) -> np.ndarray:
    return np.ones((rows, 4), np.float32)


class TestFromLoss:
    def test_names_the_rows(self):
        values = features()
        values[3, 1], values[17] = NAN, INF
        finding = RULE.from_loss(BatchFacts(32, {"features": values}), LossFacts(NAN, "other"))
        assert finding.severity == "error"
        assert finding.evidence == {
            "rows": {"features": [3, 17]},
            "examples": 2,
            "batch_size": 32,
            "loss": "nan",
        }
        json.dumps(finding.as_dict(), allow_nan=False)

    def test_names_inputs_of_a_tuple_and_float_targets(self):
        values, targets = features(8), np.zeros(8)
        values[0, 0] = targets[0] = INF
        assert (
            RULE.from_loss(BatchFacts(8, {"0": values}, targets, "1"), LossFacts(INF, "other")).severity == "error"
        )

    def test_names_eight_rows_and_keeps_all_as_evidence(self):
        values = features(12)
        values[:10, 2] = NAN
        finding = RULE.from_loss(BatchFacts(12, {"features": values}), LossFacts(NAN, "other"))
        assert finding.evidence["rows"] == {"features": list(range(10))}

    def test_is_silent_where_the_loss_copes_with_unknown_targets(self):
        targets = np.array([0.5, NAN, 0.1])
        batch = BatchFacts(3, {"features": features(3)}, targets, "labels")
        assert RULE.from_loss(batch, LossFacts(0.7, "other")) is None

    def test_is_silent_where_the_data_is_finite_and_the_loss_is_not(self):
        batch = BatchFacts(3, {"features": features(3)}, np.zeros(3), "labels")
        assert RULE.from_loss(batch, LossFacts(NAN, "other")) is None

    @pytest.mark.parametrize("name", ["attention_mask", "position_bias"])
    def test_does_not_take_an_infinite_mask_for_bad_data(self, name):
        batch = BatchFacts(3, {"features": features(3), name: np.full((3, 4), -INF)})
        assert RULE.from_loss(batch, LossFacts(NAN, "other")) is None

    def test_does_not_blame_rows_whose_own_loss_is_finite(self):
        targets = np.array([NAN, 0.5, 0.1])
        batch = BatchFacts(3, {"features": features(3)}, targets, "labels")
        assert RULE.from_loss(batch, LossFacts(NAN, "other", non_finite_rows=(2,))) is None
        assert RULE.from_loss(batch, LossFacts(NAN, "other", non_finite_rows=(0, 2))) is not None

    def test_needs_floating_point_numbers(self):
        batch = BatchFacts(2, {"input_ids": np.ones((2, 3), int)}, np.array([0, 1]), "labels")
        with pytest.raises(NotApplicable):
            RULE.from_loss(batch, LossFacts(NAN, "cross_entropy"))


def gradients(norm: float) -> GradientFacts:
    return GradientFacts(True, {"first/kernel": norm, "last/kernel": 0.5}, {}, 20)


class TestFromGradients:
    def test_names_the_rows_where_a_layer_drops_the_nan_and_the_loss_is_finite(self):
        values = features()
        values[3, 1] = NAN
        finding = RULE.from_gradients(
            BatchFacts(32, {"features": values}), LossFacts(1.0978, "cross_entropy"), gradients(NAN)
        )
        assert finding.severity == "error"
        assert finding.evidence["rows"] == {"features": [3]}
        json.dumps(finding.as_dict(), allow_nan=False)

    def test_is_silent_where_the_gradient_is_finite_too(self):
        targets = np.array([0.5, NAN, 0.1])
        batch = BatchFacts(3, {"features": features(3)}, targets, "labels")
        assert RULE.from_gradients(batch, LossFacts(0.7, "other"), gradients(2.0)) is None

    def test_is_silent_where_the_data_is_finite(self):
        batch = BatchFacts(3, {"features": features(3)}, np.zeros(3), "labels")
        assert RULE.from_gradients(batch, LossFacts(0.7, "other"), gradients(INF)) is None

    def test_leaves_a_loss_that_is_not_finite_to_the_other_way(self):
        batch = BatchFacts(1, {"features": np.full((1, 4), NAN)})
        assert RULE.from_gradients(batch, LossFacts(NAN, "other"), gradients(NAN)) is None


class TestWatchedRun:
    def test_names_the_step_whose_batch_held_it(self):
        origin = OriginFacts(33, "input", True, 39, inputs=("0",), rows=(5,), batch_size=32, batch_fingerprint=7)
        finding = NonFiniteInputs().from_origin(origin)
        assert (finding.severity, finding.step) == ("error", 33)
        assert finding.evidence == {
            "rows": [5], "inputs": ["0"], "batch_size": 32, "batch_fingerprint": 7
        }  # fmt: skip

    def test_leaves_to_other_rules_what_began_elsewhere(self):
        assert NonFiniteInputs().from_origin(OriginFacts(33, "forward", True, 39)) is None
