from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.loss import NotProbabilities
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
        assert finding.message == (
            "The model's outputs run from -1.32 to 0.98: they are logits, but the loss "
            "(sparse_categorical_crossentropy) reads probabilities, which lie between 0 and 1 and add up "
            "to 1 over the classes. It clips other values before it takes the logarithm, and no gradient "
            "passes the clip, so training is slow and stops at a poor plateau."
        )
        assert finding.fix == "loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)"
        assert finding.evidence == {
            "lowest_output": -1.32,
            "highest_output": 0.98,
            "sums_to_one": False,
            "last_activation": None,
            "loss": "sparse_categorical_crossentropy",
            "loss_reads": "probabilities",
        }

    @pytest.mark.parametrize(
        ("name", "kind", "fix"),
        [
            ("CategoricalCrossentropy", "cross_entropy", "loss=keras.losses.CategoricalCrossentropy("),
            ("categorical_focal_crossentropy", "cross_entropy", "loss=keras.losses.CategoricalFocalCrossentropy("),
            ("binary_crossentropy", "binary_cross_entropy", "loss=keras.losses.BinaryCrossentropy(from_logits"),
            (None, "binary_cross_entropy", "loss=keras.losses.BinaryCrossentropy(from_logits=True)"),
            ("two_part_loss", "cross_entropy", "give the loss from_logits=True"),
        ],
    )
    def test_and_names_the_keras_loss_to_take(self, name, kind, fix):
        loss = LossFacts(4.1, kind, 1.0, reads="probabilities", name=name)
        assert RULE.from_loss(loss, LOGITS).for_library("keras").fix.startswith(fix)

    def test_on_logits_under_nll_loss(self):
        loss = LossFacts(-0.1, "cross_entropy", 1.08, reads="log_probabilities", name="NLLLoss")
        finding = RULE.from_loss(loss, LOGITS)
        assert finding.message == (
            "The model's outputs run from -1.32 to 0.98: they are logits, but the loss (NLLLoss) reads "
            "log-probabilities, which are never above 0. The loss is minus the logit of the true class, "
            "so it decreases without bound as all logits grow, whether or not the model distinguishes "
            "the classes."
        )
        assert finding.fix == "loss_fn = torch.nn.CrossEntropyLoss()"

    def test_on_probabilities_under_nll_loss(self):
        loss = LossFacts(-0.3, "cross_entropy", 1.08, reads="log_probabilities", name="NLLLoss")
        finding = RULE.from_loss(loss, SOFTMAX)
        assert finding.message == (
            "The model's outputs run from 0.02 to 0.95 and add up to 1: they are probabilities, but the "
            "loss (NLLLoss) reads log-probabilities, which are never above 0. It uses each probability "
            "in place of its logarithm, so a confident mistake costs hardly more than a small one, and "
            "the loss is negative."
        )
        assert finding.fix == "loss_fn = torch.nn.CrossEntropyLoss(), without the softmax in the model"

    @pytest.mark.parametrize(("lowest", "highest"), [(-0.4, 0.7), (0.1, 1.6)])
    def test_on_one_logit_an_example_under_a_binary_loss_in_pytorch(self, lowest, highest):
        loss = LossFacts(2.0, "binary_cross_entropy", 0.69, reads="probabilities")
        finding = RULE.from_loss(loss, OutputFacts((8, 1), None, (), lowest, highest))
        assert finding.message.startswith(
            f"The model's outputs run from {lowest} to {highest}: they are logits, but the loss reads "
            "probabilities, which lie between 0 and 1. It clips"
        )
        assert finding.fix == "loss_fn = torch.nn.BCEWithLogitsLoss()"

    def test_on_logits_that_happen_to_be_positive_where_the_last_layer_is_linear(self):
        outputs = OutputFacts((2, 2), 2, (), 0.1, 0.8, sums_to_one=False, last_activation="linear")
        loss = LossFacts(1.0, "cross_entropy", 0.69, reads="probabilities")
        assert RULE.from_loss(loss, outputs) is not None

    @pytest.mark.parametrize(
        ("kind", "shape", "fix"),
        [
            ("cross_entropy", (8, 4), 'activation="softmax" in place of "relu" in the last layer'),
            ("binary_cross_entropy", (8, 1), 'activation="sigmoid" in place of "relu" in the last layer'),
        ],
    )
    def test_on_a_relu_that_is_given_the_function_it_lacks(self, kind, shape, fix):
        outputs = OutputFacts(shape, 4, (), 0.0, 0.9, sums_to_one=False, last_activation="relu")
        finding = RULE.from_loss(LossFacts(6.1, kind, 1.0, reads="probabilities"), outputs).for_library("keras")
        assert finding.message.startswith(
            "The model ends in relu, and its outputs run from 0 to 0.9, but the loss reads probabilities, which "
            "lie between 0 and 1"
        )
        assert finding.fix == fix

    def test_on_sigmoids_for_classes_that_exclude_each_other(self):
        outputs = OutputFacts((8, 6), 6, (), 0.1, 0.9, False, "sigmoid", indexed_labels=False)
        loss = LossFacts(1.8, "cross_entropy", 1.7, name='loss="categorical_crossentropy"')
        finding = RULE.from_loss(loss, outputs).for_library("keras")
        assert finding.severity == "warning"
        assert finding.message == (
            "The model ends in a sigmoid for each of 6 classes, but each example has exactly one class, and the "
            'loss (loss="categorical_crossentropy") reads probabilities that add up to 1 over the classes. Keras '
            "trains a softmax of the numbers before the sigmoid. What the model predicts, a sigmoid of each "
            "class, does not add up to 1 and is not trained to be its probability."
        )
        assert finding.fix == 'keras.layers.Dense(6, activation="softmax")'


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
        with pytest.raises(NotApplicable, match="needs to know whether the loss reads logits or probabilities"):
            RULE.from_loss(LossFacts(4.1, "other"), LOGITS)

    def test_to_predictions_that_are_all_nan(self):
        loss = LossFacts(float("nan"), "cross_entropy", 1.08, reads="probabilities")
        with pytest.raises(NotApplicable, match="finite predictions"):
            RULE.from_loss(loss, OutputFacts((8, 3), 3, tuple(range(8))))


class TestFromCrash:
    FRAMES = (FrameFacts("train.py", 31, "main", yours=True),)
    LIVE = CrashFacts("RuntimeError", "all elements of input should be between 0 and 1", FRAMES, live=True)

    def test_gives_the_range_of_the_scores(self):
        finding = RULE.from_crash(self.LIVE, NotProbabilities(-1.32, 2.5))
        assert finding.message == (
            "The model's outputs run from -1.32 to 2.5: they are logits, but the loss reads "
            "probabilities, which lie between 0 and 1."
        )
        assert finding.fix == "loss_fn = torch.nn.BCEWithLogitsLoss()"
        assert finding.evidence == {"lowest_output": -1.32, "highest_output": 2.5}
        assert str(finding.where) == "train.py:31 in main"

    def test_says_what_the_text_leaves_open(self):
        finding = RULE.from_crash(replace(self.LIVE, live=False), NotProbabilities())
        assert finding.message == (
            "The model's outputs do not all lie between 0 and 1, but the loss reads probabilities, which "
            "lie between 0 and 1. Usually they are logits; a NaN gives the same error. Which of the two "
            "it is cannot be read from the traceback's text: pass the exception to diagnostics.explain."
        )


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
        assert finding.message.startswith(
            "The loss divides a sum of the outputs of shape (16, 1, 20, 20) times the target"
        )

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
        assert (finding.severity, finding.fix) == ("error", "log_probs = scores.log_softmax(dim=-1)")
        span = f"{self.RAW.min():.3g} to {self.RAW.max():.3g}"
        assert finding.message.startswith(f"ctc_loss got numbers from {span}: scores, and it reads log-prob")

    def test_fires_on_probabilities_under_ctc(self):
        assert self.judge(self.SHARES).fix == "log_probs = probabilities.log()"

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
        with pytest.raises(NotApplicable, match="finite"):
            self.judge(np.full((6, 2, 5), number))
