import numpy as np
import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.loss import ShapesDiffer
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.rules.model.loss.broadcast_loss import BroadcastLoss
from tests.support.loss_graphs import constant, graph_of, leaf, step

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
        assert finding.message == (
            "The prediction has shape (32, 1) and the target (32,). The loss broadcasts them to (32, "
            "32): every prediction is compared with 32 targets instead of only its own. The constant "
            "prediction that minimises this loss is the mean, and that is what the model will learn."
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
            ((32, 5), (32, 1), "every target is compared with 5 predictions", "give the last layer 1 output"),
            ((1,), (32,), "every prediction is compared with 32 targets", "keep the batch axis first"),
        ],
    )
    def test_says_what_is_compared_with_what(self, prediction, target, compared, fix):
        finding = found(prediction, target)
        assert f"{compared} instead of only its own." in finding.message
        assert finding.fix.startswith(fix)

    def test_fires_on_an_answer_for_each_step_and_one_target(self):
        finding = found((32, 24, 1), (32, 1)).for_library("keras")
        assert finding.message == (
            "The prediction has shape (32, 24, 1) and the target (32, 1): an example has 24 predictions, one for "
            "each position of its input, and a single target, with which the loss compares all of them. Each "
            "prediction is made from its own position, or from what came before it, and not from the whole input."
        )
        assert finding.fix == "keras.layers.Flatten() before the Dense layers"
        assert finding.alternatives == (
            "return_sequences=False in the last recurrent layer",
            "keras.layers.GlobalAveragePooling1D()",
        )

    def test_words_the_fix_for_keras(self):
        assert found((32, 1), (32,)).for_library("keras").fix == "keras.ops.squeeze(y_pred, -1)"
        assert found((32,), (32, 1)).for_library("keras").fix == "keras.ops.squeeze(y_true, -1)"

    def test_does_without_the_target(self):
        finding = RULE.from_loss(STRETCHED, OutputFacts((32, 1), None))
        assert finding.message.startswith(
            "The prediction has shape (32, 1), and the target has a different one. The loss broadcasts them and "
            "compares values that do not belong together. The constant prediction"
        )
        assert finding.fix == "print both shapes just before the loss, and make them equal"

    def test_is_silent_on_a_loss_of_matching_shapes(self):
        loss = LossFacts(1.9, "mean_squared_error", 0.9)
        assert RULE.from_loss(loss, OutputFacts((32, 1), None), BatchFacts(32, {}, np.ones((32, 1)))) is None

    def test_is_silent_on_shapes_that_differ_where_the_loss_brings_them_together(self):
        loss = LossFacts(1.9, "mean_squared_error", 0.9)  # Keras squeezes (32, 1) for a target of (32,)
        assert RULE.from_loss(loss, OutputFacts((32, 1), None), BatchFacts(32, {}, np.ones(32))) is None


def error_of(output, constant, /, size=32, between="Square", **fields):
    """Return the graph of the mean of a function of the difference of a column and a row."""
    difference = step("Sub", (size, size), output, constant)
    return graph_of(step("Mean", (), step(between, (size, size), difference)), **fields)


def output(*shape, operation="Squeeze"):
    return step(operation, shape, leaf(8, 1))


class TestFromDifference:
    def test_fires_on_what_the_model_returned_less_what_the_loader_gave(self):
        graph = error_of(output(32, 1), constant(), prediction=(32, 1), target=(32,))
        finding = RULE.from_difference(graph)
        assert finding.message == (
            "In the first step the loss subtracts a target of shape (32,) and a prediction of shape (32, 1) from "
            "each other, where 32 is the size of the batch. That is a matrix of 32 by 32: every prediction is "
            "compared with every target. The constant prediction that minimises this loss is the mean, and that "
            "is what the model will learn."
        )
        assert finding.fix == "prediction.squeeze(-1)"
        assert finding.evidence == {"prediction_shape": [32, 1], "target_shape": [32]}

    def test_fires_on_a_row_less_a_column(self):
        graph = error_of(output(32), constant(), prediction=(32,), target=(32, 1))
        assert RULE.from_difference(graph).fix == "target.squeeze(-1)"

    def test_fires_on_a_prediction_that_the_loss_expanded(self):
        expanded = step("Expand", (32, 32), output(32, 1))
        graph = graph_of(step("Sqrt", (), step("MseLoss", (), expanded)), prediction=(32, 1), target=(32,))
        assert RULE.from_difference(graph) is not None

    def test_fires_on_a_traced_argument(self):
        graph = error_of(output(None, 1), constant(None, is_argument=True), size=None, traced=True)
        finding = RULE.from_difference(graph)
        assert finding.message.startswith(
            "In the step that TensorFlow traced, the loss subtracts a target of shape (n,) and a prediction of "
            "shape (n, 1) from each other, where n is the size of the batch. That is a matrix of n by n"
        )
        assert finding.fix == "tf.squeeze(y_pred, -1)"

    def test_fires_on_a_selected_value(self):
        finding = RULE.from_difference(error_of(output(32, 1, operation="Gather"), constant()))
        assert finding.evidence == {"prediction_shape": [32, 1], "target_shape": [32]}

    def test_fires_on_the_mean_square_of_a_linear_output(self):
        value = output(32, 1, operation="Addmm")
        assert RULE.from_difference(error_of(value, constant(), between="Pow")) is not None
        assert RULE.from_difference(error_of(value, constant(), between="Sigmoid")) is None

    @pytest.mark.parametrize(
        "graph",
        [
            error_of(output(32, 1), constant(), prediction=(32, 1), target=(32, 1)),
            error_of(output(32, 1), constant(), prediction=(32, 1)),
            error_of(output(32, 1), constant(), prediction=(32, 2), target=(32,)),
            error_of(output(32, 1), output(32), prediction=(32, 1), target=(32,)),
            error_of(output(2, 1), constant(), size=2, prediction=(2, 1), target=(2,)),
            error_of(output(32, 1), constant(3), traced=True),
            error_of(output(32, 1), constant(32), traced=True),
            error_of(output(32, 1), constant(32, is_argument=True), between="MatMul", traced=True),
        ],
        ids=["equal", "no target", "other output", "pairs", "few rows", "levels", "constants", "layer between"],
    )
    def test_is_silent_on_other_differences(self, graph):
        assert RULE.from_difference(graph) is None

    def test_leaves_a_loss_that_was_recognised_to_the_other_check(self):
        graph = error_of(output(32, 1), constant(), prediction=(32, 1), target=(32,))
        assert RULE.from_difference(graph, STRETCHED) is None


def mean_product(values, numbers, *after, size=32):
    """Return the graph of the mean of a product of a row and a column, and of operations between the two."""
    last = step("Mul", (size, size), values, numbers)
    for operation, *others in after:
        last = step(operation, (size, size), last, *others)
    return graph_of(step("Mean", (), last))


class TestFromProduct:
    ADVANTAGES = constant(32, 1, rises=False)

    def test_fires_on_a_product_of_a_row_and_a_column(self):
        finding = RULE.from_product(mean_product(output(32), self.ADVANTAGES))
        assert finding.message == (
            "The loss multiplies 32 values of shape (32,), which are differentiated, by 32 numbers of shape "
            "(32, 1), which are not. That is a matrix of 32 by 32, and its mean or sum is taken: each value is "
            "weighted by the numbers of all examples, as if each had their mean. What tells one example "
            "from another, such as its advantage or its weight, is averaged away."
        )
        assert finding.fix == "advantage.squeeze(-1) before the product: both of shape (32,)"

    @pytest.mark.parametrize(
        "after",
        [[("Neg",)], [("Mul", constant(value=2.0)), ("Minimum", output(32, 32))]],
        ids=["negated", "scaled and clipped"],
    )
    def test_fires_past_operations_that_keep_the_pairs(self, after):
        assert RULE.from_product(mean_product(output(32), self.ADVANTAGES, *after)) is not None

    @pytest.mark.parametrize(
        "graph",
        [
            mean_product(output(32), constant(32, rises=False)),
            mean_product(output(32), output(32, 1)),
            mean_product(leaf(32), ADVANTAGES),
            mean_product(output(32), constant(32, 1, rises=True)),
            mean_product(output(32), constant(32, 1)),
            mean_product(output(5), constant(5, 1, rises=False), size=5),
            mean_product(output(32), ADVANTAGES, ("Softmax",)),
            mean_product(output(32), ADVANTAGES, ("Mul", constant(32, 32))),
        ],
        ids=["equal", "both trained", "weights", "levels", "unread", "few rows", "softmax", "mask"],
    )
    def test_is_silent_on_products_that_are_meant(self, graph):
        assert RULE.from_product(graph) is None


class TestFromCrash:
    def test_names_both_shapes_and_the_axis_at_fault(self):
        finding = crashed((32, 2), (32, 3))
        assert finding.message == (
            "The loss cannot compare a prediction of shape (32, 2) with a target of shape (32, 3): there "
            "are 2 predictions and 3 targets per example. A loss needs one target per prediction, along "
            "the same axes. Shapes that happen to broadcast give no error, and the loss compares the "
            "wrong pairs."
        )
        assert (finding.fix, *finding.alternatives) == (
            "give the last layer 3 outputs",
            "correct the target",
        )
        assert finding.evidence == {"prediction_shape": [32, 2], "target_shape": [32, 3]}
        assert str(finding.where) == "train.py:31 in step"

    def test_sees_a_reshape_that_moved_the_batch_axis(self):
        finding = crashed((64, 3), (32,))
        assert "of shape (32,): there are 64 predictions for 32 targets." in finding.message
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
        assert (finding.fix, *finding.alternatives) == (
            f"if the targets are class indices: use a loss that reads indices ({loss})",
            "if they are values: give the last layer one output",
        )

    def test_says_what_a_bare_text_leaves_open(self):
        finding = crashed(None, None, live=False)
        assert finding.message.startswith(
            "The loss cannot compare prediction and target, because their shapes do not match. Which shapes these "
            "are cannot be read from the traceback's text: pass the exception to diagnostics.explain. A loss needs"
        )
        assert finding.evidence == {"prediction_shape": None, "target_shape": None}
        assert (
            "Which shapes these are could not be read from the exception's frames." in crashed(None, None).message
        )

    def test_sizes_that_are_open_are_not_compared(self):
        finding = crashed((None, 3), (8,), KERAS_LINE)
        assert "with a target of shape (8,). A loss needs" in finding.message

    @pytest.mark.parametrize(
        ("inside", "fix"),
        [
            (
                (),
                (
                    "loss_fn(prediction, target.argmax(-1))",
                    "target.float(), which CrossEntropyLoss reads as probabilities",
                ),
            ),
            (
                (KERAS_LINE,),
                (
                    "keras.losses.CategoricalCrossentropy, which reads one-hot targets",
                    "pass target.argmax(-1) to the loss",
                ),
            ),
        ],
        ids=["PyTorch", "Keras"],
    )
    def test_sees_one_hot_targets_under_a_loss_of_indices(self, inside, fix):
        finding = crashed((4, 3), (4, 3), *inside)
        assert finding.message == (
            "Prediction and target both have shape (4, 3), but this loss reads class indices: it needs "
            "one integer per prediction, and the target has a vector."
        )
        assert (finding.fix, *finding.alternatives) == fix

    def test_one_score_for_each_target_is_another_matter(self):
        assert crashed((4,), (4,)) is None

    @pytest.mark.parametrize(
        ("inside", "indices"),
        [
            ((), "loss_fn(prediction, target.squeeze(-1))"),
            (
                (KERAS_LINE,),
                "keras.utils.to_categorical(y, 3), or a loss that reads indices (SparseCategoricalCrossentropy)",
            ),
        ],
        ids=["PyTorch", "Keras"],
    )
    def test_sees_class_indices_in_an_axis_of_their_own(self, inside, indices):
        finding = crashed((4, 3), (4, 1), *inside)
        assert (finding.fix, *finding.alternatives) == (
            f"if the targets are class indices: {indices}",
            "if they are values: give the last layer one output",
        )


class TestFromMessagesWithNumbersAlone:
    def test_no_targets_are_left(self):
        finding = RULE.from_crash(CrashFacts("ValueError", "", FRAMES, False), ShapesDiffer(rows=(1324, 0)))
        assert finding.message == (
            "The loss got 1324 predictions for 0 targets, and needs one for each. No target is left: the labels "
            "are missing from the batch, or were all cut off."
        )

    @pytest.mark.parametrize(
        ("rows", "part"),
        [
            ((64, 16), "That is 4 predictions each: the output keeps an axis"),
            ((16, 64), "That is 4 targets each: a label for each of 4 positions"),
            ((60, 64), "Neither is a multiple of the other"),
        ],
    )
    def test_the_ratio_tells_which_has_an_axis_more(self, rows, part):
        finding = RULE.from_crash(CrashFacts("ValueError", "", FRAMES, False), ShapesDiffer(rows=rows))
        assert part in finding.message

    @pytest.mark.parametrize(
        ("got", "part"),
        [
            ((4,), "the prediction has an axis more than one prediction for each target needs"),
            ((4, 7, 9), "the prediction lost an axis, by squeeze() or an index, or the target has one more"),
        ],
    )
    def test_an_axis_more_or_less(self, got, part):
        crash = CrashFacts("RuntimeError", "", FRAMES, False)
        finding = RULE.from_crash(crash, ShapesDiffer(asked=((4, 9), got)))
        assert part in finding.message

    def test_classes_on_the_last_axis(self):
        finding = RULE.from_crash(
            CrashFacts("RuntimeError", "", FRAMES, False), ShapesDiffer(asked=((4, 9), (4, 3)))
        )
        assert "it asks for targets of shape (4, 9), and got (4, 3)" in finding.message
