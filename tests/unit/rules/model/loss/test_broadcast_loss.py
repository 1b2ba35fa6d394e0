import numpy as np
import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import ShapesDiffer
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
        assert finding.evidence == {"prediction_shape": [32, 1], "target_shape": [32]}

    @pytest.mark.parametrize(
        ("prediction", "target"), [((32,), (32, 1)), ((32, 1), (32, 5)), ((32, 5), (32, 1)), ((1,), (32,))]
    )
    def test_says_what_is_compared_with_what(self, prediction, target):
        assert found(prediction, target).severity == "error"

    def test_fires_on_an_answer_for_each_step_and_one_target(self):
        assert found((32, 24, 1), (32, 1)).severity == "error"

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
        assert finding.evidence == {"prediction_shape": [32, 1], "target_shape": [32]}

    def test_fires_on_a_row_less_a_column(self):
        graph = error_of(output(32), constant(), prediction=(32,), target=(32, 1))
        assert RULE.from_difference(graph).severity == "error"

    def test_fires_on_a_prediction_that_the_loss_expanded(self):
        expanded = step("Expand", (32, 32), output(32, 1))
        graph = graph_of(step("Sqrt", (), step("MseLoss", (), expanded)), prediction=(32, 1), target=(32,))
        assert RULE.from_difference(graph) is not None

    def test_fires_on_a_traced_argument(self):
        graph = error_of(output(None, 1), constant(None, is_argument=True), size=None, traced=True)
        assert RULE.from_difference(graph).severity == "error"

    def test_fires_on_a_selected_value(self):
        finding = RULE.from_difference(error_of(output(32, 1, operation="Gather"), constant()))
        assert finding.evidence == {"prediction_shape": [32, 1], "target_shape": [32]}

    def test_fires_on_one_of_several_outputs(self):
        graph = error_of(output(32, operation="Select"), constant(), prediction=(32, 3), target=(32, 1))
        assert RULE.from_difference(graph).evidence == {"prediction_shape": [32], "target_shape": [32, 1]}

    def test_fires_on_the_mean_square_of_a_linear_output(self):
        value = output(32, 1, operation="Addmm")
        assert RULE.from_difference(error_of(value, constant(), between="Pow")) is not None
        assert RULE.from_difference(error_of(value, constant(), between="Sigmoid")) is None

    @pytest.mark.parametrize(
        "graph",
        [
            error_of(output(32, 1), constant(), prediction=(32, 1), target=(32, 1)),
            error_of(output(32, 1), constant(), prediction=(32, 1)),
            error_of(output(32, 1), output(32), prediction=(32, 1), target=(32,)),
            error_of(output(2, 1), constant(), size=2, prediction=(2, 1), target=(2,)),
            error_of(output(32, 1), constant(3), traced=True),
            error_of(output(32, 1), constant(32), traced=True),
            error_of(output(32, 1), constant(32, is_argument=True), between="MatMul", traced=True),
        ],
        ids=["equal", "no target", "pairs", "few rows", "levels", "constants", "layer between"],
    )
    def test_is_silent_on_other_differences(self, graph):
        assert RULE.from_difference(graph) is None

    def test_leaves_a_loss_that_was_recognised_to_the_other_check(self):
        graph = error_of(output(32, 1), constant(), prediction=(32, 1), target=(32,))
        assert RULE.from_difference(graph, STRETCHED) is None


def looked_up(scores, columns, square, target, between="Square"):
    lookup = step("GatherV2", square, step("Add", scores, leaf(8, 4)), columns)
    difference = step("Sub", square, target, lookup)
    return graph_of(step("Mean", (), step(between, square, difference)), traced=True)


ARGUMENT = constant(32, is_argument=True)


class TestFromLookup:
    @pytest.mark.parametrize(
        ("size", "columns"), [(32, ARGUMENT), (None, constant(None, is_argument=True))], ids=["batch", "open"]
    )
    def test_fires_on_the_columns_of_all_rows(self, size, columns):
        finding = RULE.from_lookup(looked_up((size, 4), columns, (size, size), constant(size)))
        assert (finding.severity, finding.evidence["prediction_shape"]) == ("error", [size, size])

    @pytest.mark.parametrize(
        "graph",
        [
            looked_up((32, 4), ARGUMENT, (32,), constant(32)),
            looked_up((32, 4), constant(32), (32, 32), constant(32)),
            looked_up((32, 9), constant(3, is_argument=True), (32, 3), constant(32, 1)),
            looked_up((32, 32), ARGUMENT, (32, 32), constant(32)),
            looked_up((32, 4), ARGUMENT, (32, 32), constant(32), between="Softmax"),
            looked_up((32, 4), ARGUMENT, (32, 32), constant(32, 32)),
        ],
        ids=["own column", "fixed columns", "quantiles", "rows", "softmax over the batch", "square target"],
    )
    def test_is_silent_on_other_lookups(self, graph):
        assert RULE.from_lookup(graph) is None


def mean_product(values, numbers, *after, size=32):
    """Return the graph of the mean of a product of a row and a column, and of operations between the two."""
    last = step("Mul", (size, size), values, numbers)
    for operation, *others in after:
        last = step(operation, (size, size), last, *others)
    return graph_of(step("Mean", (), last))


class TestFromProduct:
    ADVANTAGES = constant(32, 1, rises=False)

    def test_fires_on_a_product_of_a_row_and_a_column(self):
        assert RULE.from_product(mean_product(output(32), self.ADVANTAGES)).severity == "error"

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

    def test_a_sparse_loss_says_along_which_axes_it_reads_indices(self):
        differ = ShapesDiffer((None, 10), (None, 10), sparse=True)
        assert RULE.from_crash(CrashFacts("ValueError", "", FRAMES, False), differ).fix.startswith("for one-hot")

    def test_a_sparse_loss_of_sequences_with_one_target_each_needs_fewer_predictions(self):
        differ = ShapesDiffer((32, 8, 5), (32,), sparse=True)
        fix = RULE.from_crash(CrashFacts("ValueError", "", FRAMES, False), differ).fix
        assert fix == "set return_sequences=False in the last recurrent layer"

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
