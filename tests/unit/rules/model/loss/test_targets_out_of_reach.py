import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.loss import AlignedTargets, LogRates, ShareTargets, SignedTargets
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.rules.model.loss.targets_out_of_reach import TargetsOutOfReach

RULE = TargetsOutOfReach()


def judge(targets, activation="sigmoid", kind="mean_squared_error"):
    targets = None if targets is None else np.asarray(targets, float)
    batch = BatchFacts(8, {"0": np.zeros((8, 3))}, targets, "1")
    return RULE.from_batch(batch, OutputFacts((8, 1), None, last_activation=activation), LossFacts(1.0, kind, 0.5))


class TestFires:
    def test_on_prices_behind_a_sigmoid(self):
        finding = judge([3, 20, 41, 57, 63, 80, 99, 103])
        assert (finding.rule, finding.severity) == ("targets-out-of-reach", "error")

    @pytest.mark.parametrize(
        ("activation", "targets"),
        [("relu", [-1.2, -0.4, 0.1, 0.9]), ("tanh", [-2.5, 0.3, 1.9]), ("softmax", [0.0, 3.0, 5.0])],
    )
    def test_on_other_functions_that_have_bounds(self, activation, targets):
        assert judge(targets, activation) is not None

    def test_on_scores_from_0_to_5_for_a_cosine(self):
        assert judge([0, 1.5, 3, 4.5, 5], "cosine_similarity").severity == "error"
        assert judge([0, 0.3, 0.9, 1], "cosine_similarity") is None

    def test_on_labels_of_minus_one_under_binary_cross_entropy(self):
        assert judge([-1, 1, 1, -1], "linear", "binary_cross_entropy").severity == "error"

    def test_on_pixels_under_binary_cross_entropy(self):
        assert judge([0, 12, 255, 80], None, "binary_cross_entropy").severity == "error"

    def test_on_class_indices_under_binary_cross_entropy(self):
        assert judge([3, 5, 6, 5, 7, 8, 4, 5], "sigmoid", "binary_cross_entropy").severity == "error"

    def test_on_boxes_in_pixels_behind_a_sigmoid(self):
        boxes = BatchFacts(8, {"0": np.zeros((8, 3))}, np.full((8, 4), 320.0), "1")
        loss = LossFacts(300.0, "other", name="smooth_l1_loss")
        assert (
            RULE.from_batch(boxes, OutputFacts((8, 4), None, last_activation="sigmoid"), loss).severity == "error"
        )


class TestFiresOnClasses:
    def test_of_which_there_is_only_one(self):
        batch = BatchFacts(4, {}, np.array([0, 1, 1, 0]))
        outputs = OutputFacts((4, 1), 1, last_activation="sigmoid", indexed_labels=False)
        loss = LossFacts(0.0, "cross_entropy", name='loss="categorical_crossentropy"')
        assert RULE.from_batch(batch, outputs, loss).severity == "error"

    def test_whose_indices_were_divided(self):
        batch = BatchFacts(6, {}, np.array([0, 1, 2, 3, 9, 5]) / 255)
        loss = LossFacts(2.3, "cross_entropy", 0.0, name="sparse_categorical_crossentropy")
        assert (
            RULE.from_batch(batch, OutputFacts((6, 10), 10, last_activation="softmax"), loss).severity == "error"
        )

    def test_of_which_an_example_has_several(self):
        batch = BatchFacts(4, {}, np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]))
        outputs = OutputFacts((4, 3), None, last_activation="softmax")
        assert RULE.from_batch(batch, outputs, LossFacts(0.7, "binary_cross_entropy", 0.6)).severity == "error"

    def test_given_by_their_numbers(self):
        batch = BatchFacts(4, {}, np.array([[1, 7, 3], [2, 2, 5], [4, 1, 6], [7, 7, 1]]))
        outputs = OutputFacts((4, 3), None, last_activation="softmax", indexed_labels=False)
        loss = LossFacts(40.0, "cross_entropy", name='loss="categorical_crossentropy"', accuracy=True)
        finding = RULE.from_batch(batch, outputs, loss)
        assert finding.severity == "warning"


class TestSilentOnClasses:
    @pytest.mark.parametrize("labels", [np.eye(3), np.full((3, 3), 1 / 3), np.zeros((3, 3))])
    @pytest.mark.parametrize("kind", ["binary_cross_entropy", "mean_squared_error"])
    def test_of_which_each_example_has_one_at_most(self, labels, kind):
        outputs = OutputFacts((3, 3), None, last_activation="softmax")
        assert RULE.from_batch(BatchFacts(3, {}, labels), outputs, LossFacts(0.7, kind, 0.6)) is None

    def test_behind_sigmoids_for_several_labels(self):
        outputs = OutputFacts((3, 3), None, last_activation="sigmoid")
        loss = LossFacts(0.7, "binary_cross_entropy", 0.6)
        assert RULE.from_batch(BatchFacts(3, {}, np.ones((3, 3))), outputs, loss) is None

    @pytest.mark.parametrize("labels", [np.array([0.0, 2.0, 1.0]), np.array([0, 2, 1])])
    def test_that_are_whole_numbers(self, labels):
        loss = LossFacts(1.1, "cross_entropy", 1.0)
        assert RULE.from_batch(BatchFacts(3, {}, labels), OutputFacts((3, 3), 3), loss) is None

    @pytest.mark.parametrize(
        "labels", [np.eye(3) * 0.4, np.eye(3) * [2, -3, 5], np.zeros((3, 3)), np.full((3, 3), 1 / 3)]
    )
    def test_that_are_weighted(self, labels):
        loss = LossFacts(1.1, "cross_entropy", accuracy=True)
        outputs = OutputFacts((3, 3), None, indexed_labels=False)
        assert RULE.from_batch(BatchFacts(3, {}, labels), outputs, loss) is None

    @pytest.mark.parametrize("accuracy", [None, False])
    def test_that_are_counts(self, accuracy):
        loss = LossFacts(1.1, "cross_entropy", accuracy=accuracy)
        outputs = OutputFacts((2, 3), None, indexed_labels=False)
        assert RULE.from_batch(BatchFacts(2, {}, np.array([[3, 0, 1], [0, 2, 2]])), outputs, loss) is None

    def test_whose_targets_are_distributions(self):
        outputs = OutputFacts((2, 3), None, last_activation="softmax")
        batch = BatchFacts(2, {}, np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1]]))
        assert RULE.from_batch(batch, outputs, LossFacts(1.1, "cross_entropy", 1.0)) is None


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
    ("targets", "activation", "kind"),
    [(None, "sigmoid", "mean_squared_error"), ([3.0], None, "mean_squared_error"), ([3.0], "sigmoid", "other")],
)
def test_not_applicable_without_its_evidence(targets, activation, kind):
    with pytest.raises(NotApplicable):
        judge(targets, activation, kind)


class TestSignedTargets:
    def test_zeros_under_a_loss_of_one_and_minus_one(self):
        assert (
            TargetsOutOfReach().from_signed(SignedTargets("cosine_embedding_loss", 40, 22, 18)).severity == "error"
        )

    def test_silent_on_one_and_minus_one_and_on_ties_among_them(self):
        assert TargetsOutOfReach().from_signed(SignedTargets("margin_ranking_loss", 40, 22, 0)) is None
        assert TargetsOutOfReach().from_signed(SignedTargets("margin_ranking_loss", 40, 12, 8)) is None


class TestAlignedTargets:
    def test_the_blank_among_the_labels(self):
        finding = RULE.from_aligned(AlignedTargets(20, 0, with_blank=11, too_short=0, frames=12, labels=4))
        assert finding.severity == "error"

    def test_fewer_frames_than_labels(self):
        assert (
            RULE.from_aligned(AlignedTargets(20, 0, with_blank=0, too_short=20, frames=4, labels=8)).severity
            == "error"
        )

    def test_silent_on_a_few_short_examples(self):
        assert RULE.from_aligned(AlignedTargets(20, 0, with_blank=0, too_short=3, frames=4, labels=8)) is None


class TestLogRates:
    def test_a_rate_that_is_taken_for_a_logarithm(self):
        assert RULE.from_rates(LogRates("softplus", 0.4)).severity == "error"

    def test_an_exponential_of_an_exponential(self):
        assert RULE.from_rates(LogRates("exp", 7.0)).severity == "error"

    @pytest.mark.parametrize("rates", [LogRates("linear", 0.4), LogRates(None, 0.4), LogRates("softplus", 6.0)])
    def test_silent_on_logarithms_and_on_rates_within_reach(self, rates):
        assert RULE.from_rates(rates) is None


class TestShareTargets:
    def test_classes_on_another_axis_than_the_second(self):
        finding = RULE.from_shares(ShareTargets((32, 10, 5), 0.1, 1.0, several=0.3, symmetric=False))
        assert finding.severity == "error"

    def test_several_labels_an_example(self):
        finding = RULE.from_shares(ShareTargets((50, 6), 0.1, 0.1, several=0.88, symmetric=False))
        assert finding.severity == "warning"

    @pytest.mark.parametrize(
        "targets",
        [
            ShareTargets((32, 5, 10), 1.0, 0.1, several=0.0, symmetric=False),
            ShareTargets((64, 10), 1.0, 1.0, several=0.0, symmetric=False),
            ShareTargets((64, 64), 0.2, 0.2, several=0.8, symmetric=True),
            ShareTargets((64, 3000), 0.0, 0.0, several=1.0, symmetric=False),
        ],
        ids=["over the second axis", "soft labels", "pairs of a batch", "items of a recommender"],
    )
    def test_silent(self, targets):
        assert RULE.from_shares(targets) is None
