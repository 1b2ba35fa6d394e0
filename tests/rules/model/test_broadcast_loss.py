import numpy as np
import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts, ShapesDiffer
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.rules.model.broadcast_loss import BroadcastLoss

RULE = BroadcastLoss()
STRETCHED = LossFacts(1.9, "mean_squared_error", 0.9, broadcast=True)
KERAS = ModelFacts("Sequential", "keras", 9, 9)
KERAS_LINE = FrameFacts("keras/src/backend/tensorflow/nn.py", 7, "categorical_crossentropy")
FRAMES = (FrameFacts("train.py", 31, "step", yours=True),)


def found(prediction, target, model=None):
    return RULE.from_loss(
        STRETCHED, OutputFacts(prediction, None), BatchFacts(target[0], {}, np.ones(target)), model
    )


def crashed(prediction, target, *inside, live=True):
    crash = CrashFacts("ValueError", "sizes do not match", (*FRAMES, *inside), live)
    return RULE.from_crash(crash, ShapesDiffer(prediction, target))


class TestFromLoss:
    def test_fires_on_a_column_of_predictions_and_a_row_of_targets(self):
        finding = found((32, 1), (32,))
        assert (finding.rule, finding.stage, finding.severity) == ("broadcast-loss", "model", "error")
        assert finding.message == (
            "The prediction has shape (32, 1) and the target (32,). The loss stretches them to fit each other, to "
            "(32, 32): every prediction is compared with 32 targets instead of its own alone. What suits all of "
            "them best is one answer for every example, the mean, and that is what the model will learn."
        )
        assert finding.fix == "loss_fn(prediction.squeeze(-1), target)"
        assert finding.evidence == {"prediction_shape": [32, 1], "target_shape": [32]}

    @pytest.mark.parametrize(
        ("prediction", "target", "compared", "fix"),
        [
            (
                (32,),
                (32, 1),
                "every prediction is compared with 32 targets",
                "loss_fn(prediction, target.squeeze(",
            ),
            ((32, 1), (32, 5), "every prediction is compared with 5 targets", "give the last layer 5 outputs"),
            ((32, 5), (32, 1), "every target is compared with 5 predictions", "give the last layer 1 output, or"),
            ((1,), (32,), "every prediction is compared with 32 targets", "keep the batch axis first"),
        ],
    )
    def test_says_what_is_compared_with_what(self, prediction, target, compared, fix):
        finding = found(prediction, target)
        assert f"{compared} instead of its own alone." in finding.message
        assert finding.fix.startswith(fix)

    def test_words_the_fix_for_keras(self):
        assert found((32, 1), (32,), KERAS).fix == "keras.ops.squeeze(y_pred, -1)"
        assert found((32,), (32, 1), KERAS).fix == "keras.ops.squeeze(y_true, -1)"

    def test_does_without_the_target(self):
        finding = RULE.from_loss(STRETCHED, OutputFacts((32, 1), None))
        assert finding.message.startswith(
            "The prediction has shape (32, 1), and the target another. The loss stretches them to fit each other, "
            "and compares values that do not belong together. What suits"
        )
        assert finding.fix == "print both shapes just before the loss, and make them the same"

    def test_is_silent_on_a_loss_of_matching_shapes(self):
        loss = LossFacts(1.9, "mean_squared_error", 0.9)
        assert RULE.from_loss(loss, OutputFacts((32, 1), None), BatchFacts(32, {}, np.ones((32, 1)))) is None

    def test_is_silent_on_shapes_that_differ_where_the_loss_brings_them_together(self):
        loss = LossFacts(1.9, "mean_squared_error", 0.9)  # Keras squeezes (32, 1) for a target of (32,)
        assert RULE.from_loss(loss, OutputFacts((32, 1), None), BatchFacts(32, {}, np.ones(32)), KERAS) is None


class TestFromCrash:
    def test_names_both_shapes_and_the_axis_at_fault(self):
        finding = crashed((32, 2), (32, 3))
        assert finding.message == (
            "The prediction has shape (32, 2) and the target (32, 3), and the loss cannot bring them together: "
            "for each example there are 2 predictions and 3 targets. A loss wants one target for each prediction, "
            "along the same axes; where the shapes happen to stretch to fit, it would compare the wrong ones "
            "without a word."
        )
        assert finding.fix == "give the last layer 3 outputs, or mend the target"
        assert finding.evidence == {"prediction_shape": [32, 2], "target_shape": [32, 3]}
        assert str(finding.where) == "train.py:31 in step"

    def test_sees_a_reshape_that_moved_the_batch_axis(self):
        finding = crashed((64, 3), (32,))
        assert "cannot bring them together: there are 64 predictions for 32 targets." in finding.message
        assert finding.fix.endswith("x.reshape(x.shape[0], -1)")

    @pytest.mark.parametrize(
        ("file", "loss"),
        [
            ("site-packages/torch/nn/functional.py", "torch.nn.CrossEntropyLoss"),
            ("site-packages/keras/src/losses/losses.py", "SparseCategoricalCrossentropy"),
        ],
    )
    def test_sees_class_indices_under_a_loss_of_values(self, file, loss):
        finding = crashed((32, 3), (32,), FrameFacts(file, 7, "call"))
        assert finding.fix == (
            f"if the targets are class indices, take a loss that reads indices ({loss}); if they are values, give "
            "the last layer one output"
        )

    def test_says_what_a_bare_text_leaves_open(self):
        finding = crashed(None, None, live=False)
        assert finding.message.startswith(
            "Prediction and target have shapes that the loss cannot bring together; which ones cannot be known "
            "from the text. A loss wants"
        )
        assert finding.evidence == {"prediction_shape": None, "target_shape": None}
        assert "which ones could not be read from the exception's frames." in crashed(None, None).message

    def test_sizes_that_are_open_are_not_compared(self):
        finding = crashed((None, 3), (8,), KERAS_LINE)
        assert "cannot bring them together. A loss wants" in finding.message

    @pytest.mark.parametrize(
        ("inside", "fix"),
        [
            ((), "loss_fn(prediction, target.argmax(-1)), or target.float(), which CrossEntropyLoss takes for "),
            (
                (KERAS_LINE,),
                "keras.losses.CategoricalCrossentropy, which reads one-hot targets, or hand over target",
            ),
        ],
        ids=["PyTorch", "Keras"],
    )
    def test_sees_one_hot_targets_under_a_loss_of_indices(self, inside, fix):
        finding = crashed((4, 3), (4, 3), *inside)
        assert finding.message == (
            "The prediction has shape (4, 3) and the target too, but this loss reads class indices: one number "
            "for each prediction, where the target has a vector."
        )
        assert finding.fix.startswith(fix)

    def test_one_score_for_each_target_is_another_matter(self):
        assert crashed((4,), (4,)) is None

    @pytest.mark.parametrize(
        ("inside", "indices"),
        [
            ((), "loss_fn(prediction, target.squeeze(-1))"),
            ((KERAS_LINE,), "take a loss that reads indices (SparseCategoricalCrossentropy)"),
        ],
        ids=["PyTorch", "Keras"],
    )
    def test_sees_class_indices_in_an_axis_of_their_own(self, inside, indices):
        finding = crashed((4, 3), (4, 1), *inside)
        assert finding.fix == (
            f"if the targets are class indices, {indices}; if they are values, give the last layer one output"
        )
