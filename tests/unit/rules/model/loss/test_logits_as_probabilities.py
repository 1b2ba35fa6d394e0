from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import NotProbabilities
from diagnostics.facts.loss_call import Argument, LossCall, LossCalls
from diagnostics.facts.pipeline import LossFacts, OutputFacts
from diagnostics.rules.model.loss.logits_as_probabilities import LogitsAsProbabilities
from tests.support.loss_graphs import constant, graph_of, leaf, step

RULE = LogitsAsProbabilities()
LOGITS = OutputFacts((8, 3), 3, (), -1.32, 0.98, sums_to_one=False)
SOFTMAX = OutputFacts((8, 3), 3, (), 0.02, 0.95, sums_to_one=True, last_activation="softmax")


class TestFires:
    def test_on_logits_under_a_keras_loss_named_by_a_string(self):
        loss = LossFacts(4.1, "cross_entropy", 1.08, reads="probabilities", name="sparse_categorical_crossentropy")
        finding = RULE.from_loss(loss, LOGITS).for_library("keras")
        assert (finding.rule, finding.stage, finding.severity) == ("logits-as-probabilities", "model", "error")
        assert finding.evidence == {
            "lowest_output": -1.32,
            "highest_output": 0.98,
            "sums_to_one": False,
            "last_activation": None,
            "loss": "sparse_categorical_crossentropy",
            "loss_reads": "probabilities",
        }

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("CategoricalCrossentropy", "cross_entropy"),
            ("categorical_focal_crossentropy", "cross_entropy"),
            ("binary_crossentropy", "binary_cross_entropy"),
            (None, "binary_cross_entropy"),
            ("two_part_loss", "cross_entropy"),
        ],
    )
    def test_and_names_the_keras_loss_to_take(self, name, kind):
        loss = LossFacts(4.1, kind, 1.0, reads="probabilities", name=name)
        assert RULE.from_loss(loss, LOGITS).severity == "error"

    def test_on_logits_under_nll_loss(self):
        loss = LossFacts(-0.1, "cross_entropy", 1.08, reads="log_probabilities", name="NLLLoss")
        assert RULE.from_loss(loss, LOGITS).severity == "error"

    def test_on_probabilities_under_nll_loss(self):
        loss = LossFacts(-0.3, "cross_entropy", 1.08, reads="log_probabilities", name="NLLLoss")
        assert RULE.from_loss(loss, SOFTMAX).severity == "error"

    @pytest.mark.parametrize(("lowest", "highest"), [(-0.4, 0.7), (0.1, 1.6)])
    def test_on_one_logit_an_example_under_a_binary_loss_in_pytorch(self, lowest, highest):
        loss = LossFacts(2.0, "binary_cross_entropy", 0.69, reads="probabilities")
        assert RULE.from_loss(loss, OutputFacts((8, 1), None, (), lowest, highest)).severity == "error"

    def test_on_logits_that_happen_to_be_positive_where_the_last_layer_is_linear(self):
        outputs = OutputFacts((2, 2), 2, (), 0.1, 0.8, sums_to_one=False, last_activation="linear")
        loss = LossFacts(1.0, "cross_entropy", 0.69, reads="probabilities")
        assert RULE.from_loss(loss, outputs) is not None

    @pytest.mark.parametrize(("kind", "shape"), [("cross_entropy", (8, 4)), ("binary_cross_entropy", (8, 1))])
    def test_on_a_relu_that_is_given_the_function_it_lacks(self, kind, shape):
        outputs = OutputFacts(shape, 4, (), 0.0, 0.9, sums_to_one=False, last_activation="relu")
        assert RULE.from_loss(LossFacts(6.1, kind, 1.0, reads="probabilities"), outputs).severity == "error"

    def test_on_sigmoids_for_classes_that_exclude_each_other(self):
        outputs = OutputFacts((8, 6), 6, (), 0.1, 0.9, False, "sigmoid", indexed_labels=False)
        loss = LossFacts(1.8, "cross_entropy", 1.7, name='loss="categorical_crossentropy"')
        finding = RULE.from_loss(loss, outputs).for_library("keras")
        assert finding.severity == "warning"


class TestStaysSilent:
    def test_on_sigmoids_for_several_labels_at_once(self):
        outputs = OutputFacts((8, 6), None, (), 0.1, 0.9, sums_to_one=False, last_activation="sigmoid")
        loss = LossFacts(0.7, "binary_cross_entropy", 0.6, reads="probabilities")
        assert RULE.from_loss(loss, outputs) is None

    @pytest.mark.parametrize(
        ("kind", "reads", "outputs"),
        [
            ("cross_entropy", "probabilities", SOFTMAX),
            ("cross_entropy", "logits", LOGITS),
            ("cross_entropy", "logits", SOFTMAX),  # probabilities-as-logits
            ("cross_entropy", "log_probabilities", OutputFacts((8, 3), 3, (), -4.2, -0.01, sums_to_one=False)),
            ("cross_entropy", "log_probabilities", OutputFacts((8, 3), 3, (), -90.0, 1e-6, sums_to_one=False)),
            ("cross_entropy", "probabilities", OutputFacts((8, 3), 3, (), -1e-7, 1.0000001, sums_to_one=True)),
            ("binary_cross_entropy", "probabilities", OutputFacts((8, 1), None, (), 0.0, 1.0)),
            # Keras divides these by their sum, which makes them probabilities:
            (
                "cross_entropy",
                "probabilities",
                OutputFacts((8, 3), 3, (), 0.2, 3.1, sums_to_one=False, last_activation="softplus"),
            ),
        ],
    )
    def test_where_the_prediction_can_be_what_the_loss_takes_it_for(self, kind, reads, outputs):
        assert RULE.from_loss(LossFacts(1.0, kind, 1.0, reads=reads), outputs) is None


class TestNotApplicable:
    def test_where_the_reading_of_the_loss_is_not_known(self):
        with pytest.raises(NotApplicable):
            RULE.from_loss(LossFacts(4.1, "other"), LOGITS)

    def test_to_predictions_that_are_all_nan(self):
        loss = LossFacts(float("nan"), "cross_entropy", 1.08, reads="probabilities")
        with pytest.raises(NotApplicable):
            RULE.from_loss(loss, OutputFacts((8, 3), 3, tuple(range(8))))


class TestFromCrash:
    FRAMES = (FrameFacts("train.py", 31, "main", yours=True),)
    LIVE = CrashFacts("RuntimeError", "all elements of input should be between 0 and 1", FRAMES, live=True)

    def test_gives_the_range_of_the_scores(self):
        finding = RULE.from_crash(self.LIVE, NotProbabilities(-1.32, 2.5))
        assert finding.evidence == {"lowest_output": -1.32, "highest_output": 2.5}
        assert str(finding.where) == "train.py:31 in main"

    def test_says_what_the_text_leaves_open(self):
        assert RULE.from_crash(replace(self.LIVE, live=False), NotProbabilities()).severity == "error"


class TestOverlap:
    SHAPE = (16, 1, 20, 20)

    def judge(self, outputs, weigh=lambda flat: step("Mul", (6400,), flat, constant(6400)), power="Clone"):
        """Judge 2 * sum(outputs * masks) / (sum(outputs) + sum(masks))."""
        flat = step("View", (6400,), outputs)
        above = step("Mul", (), step("Sum", (), weigh(flat)), constant(value=2.0))
        below = step("Add", (), step("Sum", (), step(power, (6400,), flat)), constant())
        return LogitsAsProbabilities().from_overlap(graph_of(step("Rsub", (), step("Div", (), above, below))))

    def outputs(self, weight=None):
        return step("Convolution", self.SHAPE, constant(), weight or leaf(1, 3, 1, 1), leaf(1))

    def test_fires_on_raw_outputs(self):
        finding = self.judge(self.outputs())
        assert (finding.rule, finding.severity) == ("logits-as-probabilities", "error")

    def test_is_silent_on_probabilities(self):
        assert self.judge(step("Sigmoid", self.SHAPE, self.outputs())) is None

    def test_is_silent_on_a_fixed_filter_of_probabilities(self):
        probabilities = step("Sigmoid", self.SHAPE, self.outputs())
        blurred = step("Convolution", self.SHAPE, probabilities, constant(1, 1, 3, 3))
        assert self.judge(step("UpsampleBilinear2D", self.SHAPE, blurred)) is None

    def test_other_ratios_say_nothing(self):
        with pytest.raises(NotApplicable):
            self.judge(self.outputs(), weigh=lambda flat: flat)  # a ratio of equal sums
        with pytest.raises(NotApplicable):
            self.judge(self.outputs(), power="Pow")  # of sums of outputs and of squares


class TestAlignedScores:
    RAW = np.random.default_rng(0).normal(size=(6, 2, 5)).astype(np.float32)
    EXPONENTIALS = np.exp(RAW)
    SHARES = EXPONENTIALS / EXPONENTIALS.sum(-1, keepdims=True)

    def judge(self, log_probs):
        return RULE.from_calls(LossCalls((LossCall("ctc_loss", {"log_probs": Argument.of(log_probs)}),)))

    def test_fires_on_scores_under_ctc(self):
        finding = self.judge(self.RAW)
        assert finding.severity == "error"

    def test_fires_on_probabilities_under_ctc(self):
        assert self.judge(self.SHARES).severity == "error"

    def test_fires_on_log_probabilities_over_another_axis(self):
        shares = self.EXPONENTIALS / self.EXPONENTIALS.sum(0)
        assert self.judge(np.log(shares)).evidence["made"] == "scores"

    def test_is_silent_on_log_probabilities_as_bfloat16_rounds_them(self):
        assert self.judge(np.log(self.SHARES) * 1.005) is None

    def test_is_silent_on_classes_that_a_mask_leaves_out(self):
        masked = np.concatenate([np.log(self.SHARES), np.full((6, 2, 1), -np.inf)], axis=-1)
        assert self.judge(masked) is None

    @pytest.mark.parametrize("number", [np.nan, np.inf])
    def test_is_not_applicable_to_numbers_that_are_none(self, number):
        with pytest.raises(NotApplicable):
            self.judge(np.full((6, 2, 5), number))
