import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.loss_call import Argument, LossCall, LossCalls
from diagnostics.facts.loss_graph import LossGraph, Node, Operand
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


def judge_call(function, made_by=None, options=None, **arguments):
    given = {name: Argument.of(np.asarray(value)) for name, value in arguments.items()}
    return RULE.from_calls(LossCalls((LossCall(function, given, options or {}, made_by=made_by),)))


class TestSignedTargets:
    def test_zeros_under_a_loss_of_one_and_minus_one(self):
        assert judge_call("cosine_embedding_loss", target=[1.0] * 22 + [0.0] * 18).severity == "error"

    def test_silent_on_one_and_minus_one_and_on_ties_among_them(self):
        assert judge_call("margin_ranking_loss", target=[1] * 22 + [-1] * 18) is None
        assert judge_call("margin_ranking_loss", target=[1] * 12 + [0] * 8 + [-1] * 20) is None


class TestAlignedTargets:
    def judge(self, targets, target_lengths, frames=(12, 12), **options):
        lengths = {"input_lengths": frames, "target_lengths": target_lengths}
        return judge_call("ctc_loss", options=options, targets=targets, **lengths)

    def test_the_blank_among_the_labels(self):
        finding = self.judge([[1, 0, 2], [3, 1, 2]], (3, 3))
        assert finding.severity == "error"

    def test_fewer_frames_than_labels(self):
        assert self.judge([[1, 2, 3], [3, 3, 0]], (3, 2), frames=(2, 2)).severity == "error"

    def test_targets_in_one_row_are_cut_by_their_lengths(self):
        finding = self.judge([1, 0, 3, 3, 4], (2, 3), frames=(6, 3), blank=0)
        assert finding.evidence == {
            "examples": 2, "blank": 0, "with_blank": 1, "too_short": 1, "frames": 3, "labels": 3
        }  # fmt: skip

    def test_another_blank(self):
        assert self.judge([[0, 1], [4, 2]], (2, 2), blank=4).evidence["with_blank"] == 1

    def test_silent_on_padding_and_on_a_few_short_examples(self):
        assert self.judge([[1, 2, 0], [3, 3, 4], [1, 2, 3]], (2, 3, 3), frames=(6, 6, 2)) is None


class TestLogRates:
    def test_a_rate_that_is_taken_for_a_logarithm(self):
        assert judge_call("poisson_nll_loss", "softplus", target=[0.0, 1.0, 0.0, 0.0, 1.0]).severity == "error"

    def test_an_exponential_of_an_exponential(self):
        assert judge_call("poisson_nll_loss", "exp", target=[7.0]).severity == "error"

    @pytest.mark.parametrize(("made_by", "mean"), [("linear", 0.4), (None, 0.4), ("softplus", 6.0)])
    def test_silent_on_logarithms_and_on_rates_within_reach(self, made_by, mean):
        assert judge_call("poisson_nll_loss", made_by, target=[mean]) is None

    def test_not_applicable_to_a_loss_that_reads_rates(self):
        with pytest.raises(NotApplicable):
            judge_call("poisson_nll_loss", "exp", {"log_input": False}, target=[7.0])


class TestShareTargets:
    ONE_HOT = np.eye(5)[np.random.default_rng(0).integers(5, size=(32, 10))]
    TAGS = np.array([[1.0, 1.0, 0.0]] * 7 + [[0.0, 1.0, 0.0]])

    def judge(self, target):
        return judge_call("cross_entropy", input=np.zeros_like(target), target=target)

    def test_classes_on_another_axis_than_the_second(self):
        finding = self.judge(self.ONE_HOT)
        assert finding.severity == "error"

    def test_a_single_class(self):
        finding = self.judge(np.array([[0.0], [1.0], [1.0]]))
        assert (finding.severity, finding.evidence["units"]) == ("error", 1)

    def test_several_labels_an_example(self):
        finding = self.judge(self.TAGS)
        assert (finding.severity, finding.evidence["several"]) == ("warning", 0.875)

    @pytest.mark.parametrize(
        "target",
        [
            np.moveaxis(ONE_HOT, -1, 1),
            np.full((64, 10), 0.1),
            np.ones((8, 8)),
            np.ones((4, 51)),
            2 * TAGS,
        ],
        ids=["over the second axis", "soft labels", "pairs of a batch", "items of a recommender", "amounts"],
    )
    def test_silent(self, target):
        assert self.judge(target) is None

    @pytest.mark.parametrize(
        "target", [np.zeros(4, int), -TAGS, TAGS[:, 0]], ids=["indices", "negative", "numbers"]
    )
    def test_not_applicable_to_other_targets(self, target):
        with pytest.raises(NotApplicable):
            judge_call("cross_entropy", input=np.zeros((8, 3)), target=target)


def test_judges_the_call_that_it_knows_among_others():
    signs = LossCall("soft_margin_loss", {"target": Argument.of(np.zeros(8))})
    assert RULE.from_calls(LossCalls((LossCall("mse_loss", {}), signs))) is not None


class TestBoxes:
    CENTRES = np.tile([[0.6, 0.5], [0.3, 0.7]], (8, 1)).astype("float32")

    def judge(self, low, high, source="Slice"):
        low, high = (Operand(shape=one.shape, beginning=one.tobytes()) for one in (low, high))
        trained = (Operand(3), Operand(4)) if source == "Slice" else (Operand(3), Operand(3))
        nodes = (
            Node("Sub", (16, 2), (Operand(1), Operand(2))),
            Node("Minimum", (16, 2), (trained[0], high)),
            Node("Maximum", (16, 2), (trained[1], low)),
            Node(source, (16, 2)),
            Node("Slice", (16, 2)),
        )
        return RULE.from_overlap(LossGraph(nodes))

    def test_of_which_the_second_corner_comes_first(self):
        finding = self.judge(self.CENTRES, np.full_like(self.CENTRES, 0.4))
        assert (finding.severity, finding.evidence["inverted"]) == ("error", 16)

    def test_whose_centres_look_like_corners(self):
        size = self.CENTRES + 0.3
        finding = self.judge(self.CENTRES / 4 - size / 2, self.CENTRES / 4 + size / 2)
        assert finding.evidence["outside"] == 16

    def test_silent_on_corners_and_on_few_wrong_ones(self):
        high = self.CENTRES + 0.1
        assert self.judge(self.CENTRES, high) is None
        high[0] = 0
        assert self.judge(self.CENTRES, high) is None

    def test_not_applicable_to_one_number_within_a_band(self):
        with pytest.raises(NotApplicable):
            self.judge(self.CENTRES + 1, self.CENTRES, source="Addmm")
