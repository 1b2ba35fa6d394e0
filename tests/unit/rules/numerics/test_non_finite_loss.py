import json
import math

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.rules.numerics.non_finite_loss import NonFiniteLoss
from tests.support.courses import history, judge

FEATURES = np.arange(32, dtype=np.float32).reshape(8, 4)
LARGE = "the weights take more than 512 MiB and were not copied"
LABELS = np.array([0, 2, 1, 0, 2, 1, 2, 0])
FINITE = OutputFacts((8, 2), 2)


def nan_loss(rows=None):
    return LossFacts(math.nan, "cross_entropy", non_finite_rows=rows)


class TestFires:
    def test_on_a_loss_that_one_label_makes_nan(self):
        batch = BatchFacts(8, {"x": FEATURES}, LABELS)
        finding = NonFiniteLoss().from_loss(nan_loss((1, 4, 6)), FINITE, batch)
        assert (finding.rule, finding.severity, finding.stage) == ("non-finite-loss", "error", "numerics")
        assert finding.evidence == {
            "loss": "nan",
            "outputs_finite": True,
            "examples": [1, 4, 6],
            "shared": "All of them have label 2, and no other example does.",
        }
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_an_output_that_one_broken_input_makes_nan(self):
        broken = FEATURES.copy()
        broken[3, 2] = np.nan
        outputs = OutputFacts((8, 2), 2, non_finite_rows=(3,))
        assert (
            NonFiniteLoss().from_loss(nan_loss((3,)), outputs, BatchFacts(8, {"0": broken}, LABELS)).severity
            == "error"
        )

    def test_on_an_output_that_is_nan_for_all(self):
        outputs = OutputFacts((8, 2), 2, non_finite_rows=tuple(range(8)))
        assert (
            NonFiniteLoss().from_loss(nan_loss(), outputs, BatchFacts(8, {"x": FEATURES}, LABELS)).severity
            == "error"
        )

    def test_on_labels_that_the_loss_leaves_out_altogether(self):
        batch = BatchFacts(2, {}, np.full((2, 5), -100), "labels", -100)
        assert NonFiniteLoss().from_loss(nan_loss((0, 1)), OutputFacts((2, 5, 9), 9), batch).severity == "error"

    def test_on_a_sum_that_overflows_although_no_example_does(self):
        loss = LossFacts(math.inf, "other", non_finite_rows=())
        assert NonFiniteLoss().from_loss(loss, FINITE, BatchFacts(8, {"x": FEATURES}, LABELS)).severity == "error"

    def test_on_the_loss_alone_it_says_what_is_not_known(self):
        finding = NonFiniteLoss().from_loss(nan_loss())
        assert finding.evidence == {"loss": "nan", "outputs_finite": None, "examples": [], "shared": None}

    def test_naming_at_most_eight_examples(self):
        batch = BatchFacts(64, {"x": np.arange(64.0) % 7}, np.arange(64) % 3)
        finding = NonFiniteLoss().from_loss(nan_loss(tuple(range(1, 21))), FINITE, batch)
        assert finding.evidence["examples"] == list(range(1, 21))


@pytest.mark.parametrize("value", [0.0, 0.7, 1e30, -3.0])
def test_silent_on_a_finite_loss(value):
    assert NonFiniteLoss().from_loss(LossFacts(value, "other"), OutputFacts((8, 2), 2, (1,))) is None


def origin(kind, **more):
    known = {"replayed": True, "noticed": 19, "num_parameters": 4, "batch_size": 8}
    return OriginFacts(step=12, kind=kind, **(known | more))


class TestWatchedRun:
    def test_names_the_step_of_a_loss_that_breaks_by_itself(self):
        finding = NonFiniteLoss().from_origin(origin("loss", loss=math.nan))
        assert (finding.severity, finding.step) == ("error", 12)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_tells_of_outputs_that_are_too_large(self):
        facts = origin("loss", loss=math.inf, largest=2.1e28)
        finding = judge(
            NonFiniteLoss().from_origin, facts, history(losses=np.ones(12), gradient_norms=np.full(12, 4e3))
        )
        assert "reach 2.1e+28" in finding.message
        assert "step 11 had a norm of 4e+03" in finding.message

    def test_names_the_step_whose_update_broke_the_weights(self):
        facts = origin("optimizer step", parameters=("a", "b", "c", "d"), learning_rate=math.inf)
        assert NonFiniteLoss().from_origin(facts).severity == "error"

    def test_says_what_is_not_known_without_the_weights_from_before(self):
        assert (
            NonFiniteLoss().from_origin(origin(None, loss=math.inf, replayed=False, reason=LARGE)).severity
            == "error"
        )

    def test_says_by_when_the_weights_were_broken_where_more_is_not_known(self):
        facts = origin("weights", loss=0.7, replayed=False, parameters=("a",), reason="no batch was recorded")
        assert NonFiniteLoss().from_origin(facts).severity == "error"

    def test_repeats_what_the_framework_says_of_a_loss_that_it_refuses(self):
        facts = origin("loss", loss=math.nan, reason="Received a label value of 7 outside [0, 3)")
        assert NonFiniteLoss().from_origin(facts).severity == "error"

    @pytest.mark.parametrize("kind", ["input", "forward", "gradient"])
    def test_leaves_to_other_rules_what_began_elsewhere(self, kind):
        assert NonFiniteLoss().from_origin(origin(kind, loss=math.nan)) is None

    def test_not_applicable_where_neither_loss_nor_origin_is_known(self):
        with pytest.raises(NotApplicable):
            NonFiniteLoss().from_origin(origin(None, reason=LARGE))
