import numpy as np
import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.loss import ShapesDiffer
from diagnostics.facts.loss import StretchedProduct, TracedDifference
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.rules.model.loss.broadcast_loss import BroadcastLoss

RULE = BroadcastLoss()
STRETCHED = LossFacts(1.9, "mean_squared_error", 0.9, broadcast=True)
KERAS_LINE = FrameFacts("keras/src/backend/tensorflow/nn.py", 7, "categorical_crossentropy")
FRAMES = (FrameFacts("train.py", 31, "step", yours=True),)


def found(prediction, target):
    return RULE.from_loss(STRETCHED, OutputFacts(prediction, None), BatchFacts(target[0], {}, np.ones(target)))


def crashed(prediction, target, *inside, live=True):
    crash = CrashFacts("ValueError", "sizes do not match", (*FRAMES, *inside), live)
    finding = RULE.from_crash(crash, ShapesDiffer(prediction, target))
    return finding and finding.for_library("keras" if crash.in_keras else "torch")


class TestFromLoss:
    def test_fires_on_a_column_of_predictions_and_a_row_of_targets(self):
        finding = found((32, 1), (32,))
        assert (finding.rule, finding.stage, finding.severity) == ("broadcast-loss", "model", "error")
        assert finding.evidence == {"prediction_shape": [32, 1], "target_shape": [32]}

    @pytest.mark.parametrize(
        ("prediction", "target"), [((32,), (32, 1)), ((32, 1), (32, 5)), ((32, 5), (32, 1)), ((1,), (32,))]
    )
    def test_says_what_is_compared_with_what(self, prediction, target):
        assert found(prediction, target).severity == "error"

    def test_fires_on_an_answer_for_each_step_and_one_target(self):
        assert found((32, 24, 1), (32, 1)).severity == "error"

    def test_fires_on_a_difference_that_was_traced(self):
        assert RULE.from_trace(TracedDifference((None, 1), (None,))).severity == "error"
        assert RULE.from_trace(TracedDifference((32,), (32, 1))).severity == "error"

    def test_names_the_shapes_in_the_graph_of_a_loss_written_by_hand(self):
        assert RULE.from_trace(TracedDifference((32, 1), (32,), traced=False)).severity == "error"
        assert RULE.from_trace(TracedDifference((32,), (32, 1), traced=False)).severity == "error"

    def test_fires_on_a_product_of_a_row_and_a_column(self):
        assert RULE.from_product(StretchedProduct((256,), (256, 1))).severity == "error"

    def test_words_the_fix_for_keras(self):
        assert found((32, 1), (32,)).severity == "error"
        assert found((32,), (32, 1)).severity == "error"

    def test_does_without_the_target(self):
        assert RULE.from_loss(STRETCHED, OutputFacts((32, 1), None)).severity == "error"

    def test_is_silent_on_a_loss_of_matching_shapes(self):
        loss = LossFacts(1.9, "mean_squared_error", 0.9)
        assert RULE.from_loss(loss, OutputFacts((32, 1), None), BatchFacts(32, {}, np.ones((32, 1)))) is None

    def test_is_silent_on_shapes_that_differ_where_the_loss_brings_them_together(self):
        loss = LossFacts(1.9, "mean_squared_error", 0.9)  # Keras squeezes (32, 1) for a target of (32,)
        assert RULE.from_loss(loss, OutputFacts((32, 1), None), BatchFacts(32, {}, np.ones(32))) is None


class TestFromCrash:
    def test_names_both_shapes_and_the_axis_at_fault(self):
        finding = crashed((32, 2), (32, 3))
        assert finding.evidence == {"prediction_shape": [32, 2], "target_shape": [32, 3]}
        assert str(finding.where) == "train.py:31 in step"

    def test_sees_a_reshape_that_moved_the_batch_axis(self):
        assert crashed((64, 3), (32,)).severity == "error"

    @pytest.mark.parametrize(
        "file", ["site-packages/torch/nn/functional.py", "site-packages/keras/src/losses/losses.py"]
    )
    def test_sees_class_indices_under_a_loss_of_values(self, file):
        assert crashed((32, 3), (32,), FrameFacts(file, 7, "call")).severity == "error"

    def test_says_what_a_bare_text_leaves_open(self):
        finding = crashed(None, None, live=False)
        assert finding.evidence == {"prediction_shape": None, "target_shape": None}
        assert crashed(None, None).severity == "error"

    def test_sizes_that_are_open_are_not_compared(self):
        assert crashed((None, 3), (8,), KERAS_LINE).severity == "error"

    @pytest.mark.parametrize("inside", [(), (KERAS_LINE,)], ids=["PyTorch", "Keras"])
    def test_sees_one_hot_targets_under_a_loss_of_indices(self, inside):
        assert crashed((4, 3), (4, 3), *inside).severity == "error"

    def test_one_score_for_each_target_is_another_matter(self):
        assert crashed((4,), (4,)) is None

    @pytest.mark.parametrize("inside", [(), (KERAS_LINE,)], ids=["PyTorch", "Keras"])
    def test_sees_class_indices_in_an_axis_of_their_own(self, inside):
        assert crashed((4, 3), (4, 1), *inside).severity == "error"


class TestFromMessagesWithNumbersAlone:
    def test_no_targets_are_left(self):
        assert (
            RULE.from_crash(CrashFacts("ValueError", "", FRAMES, False), ShapesDiffer(rows=(1324, 0))).severity
            == "error"
        )

    @pytest.mark.parametrize("rows", [(64, 16), (16, 64), (60, 64)])
    def test_the_ratio_tells_which_has_an_axis_more(self, rows):
        assert (
            RULE.from_crash(CrashFacts("ValueError", "", FRAMES, False), ShapesDiffer(rows=rows)).severity
            == "error"
        )

    @pytest.mark.parametrize("got", [(4,), (4, 7, 9)])
    def test_an_axis_more_or_less(self, got):
        crash = CrashFacts("RuntimeError", "", FRAMES, False)
        assert RULE.from_crash(crash, ShapesDiffer(asked=((4, 9), got))).severity == "error"

    def test_classes_on_the_last_axis(self):
        assert (
            RULE.from_crash(
                CrashFacts("RuntimeError", "", FRAMES, False), ShapesDiffer(asked=((4, 9), (4, 3)))
            ).severity
            == "error"
        )
