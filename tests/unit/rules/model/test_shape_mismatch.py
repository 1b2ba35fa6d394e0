import pytest

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.shapes import AxesMisfit, LayerMisfit, OperandsMisfit, ReshapeMisfit, WeightsMisfit
from diagnostics.rules.model.shape_mismatch import ShapeMismatch

RULE = ShapeMismatch()
CRASH = CrashFacts("RuntimeError", "", (FrameFacts("train.py", 31, "forward", yours=True),), live=True)


def linear(wanted, got, shape, **more):
    axis = None if shape is None else len(shape) - 1
    return LayerMisfit(
        wanted, got, "Linear", "model.fc", "in_features", shape, axis, rebuilt="nn.Linear({}, 10)", **more
    )


def conv(wanted, got, shape, axis=1, **more):
    return LayerMisfit(
        wanted, got, "Conv2d", "model.stem", "in_channels", shape, axis, rebuilt="nn.Conv2d({}, 8, ...)", **more
    )


class TestFromLayer:
    def test_names_the_layer_what_it_was_built_for_and_what_it_got(self):
        finding = RULE.from_layer(CRASH, linear(128, 512, (32, 512)))
        assert (finding.rule, finding.stage, finding.severity) == ("shape-mismatch", "model", "error")
        assert finding.evidence == {
            "layer": "Linear",
            "path": "model.fc",
            "setting": "in_features",
            "wanted": 128,
            "got": 512,
            "input_shape": [32, 512],
        }
        assert str(finding.where) == "train.py:31 in forward"

    @pytest.mark.parametrize(
        "symptom",
        [
            linear(1600, 5, (32, 64, 5, 5)),
            linear(1000, 5, (32, 64, 5, 5)),
            linear(64, 5, (32, 64, 5, 5)),
            linear(64, 50, (32, 64, 50)),
            linear(784, 25088, (25088,)),
            conv(3, 28, (8, 28, 28, 3)),
            conv(3, 28, (28, 28, 3), axis=0),
            conv(1, 32, (32, 28, 28), axis=0),
            conv(3, 1, (8, 1, 28, 28)),
        ],
    )
    def test_fixes_the_input_where_the_numbers_say_so(self, symptom):
        assert RULE.from_layer(CRASH, symptom).severity == "error"

    @pytest.mark.parametrize(
        "symptom",
        [linear(128, 512, (128, 7, 512)), linear(100, 512, (4, 7, 512)), conv(16, 8, (4, 8, 16, 16))],
        ids=["the batch's size", "none fits", "as wide as it wants channels"],
    )
    def test_changes_the_layer_where_they_do_not(self, symptom):
        assert RULE.from_layer(CRASH, symptom).severity == "error"

    def test_a_batch_as_large_as_the_layer_is_wide_may_be_chance(self):
        assert RULE.from_layer(CRASH, linear(64, 50, (64, 50))).severity == "error"

    def test_from_a_text_the_rows_of_a_table_may_be_what_was_not_flattened(self):
        assert RULE.from_layer(CRASH, linear(784, 28, None, rows=896)).severity == "error"

    @pytest.mark.parametrize(("wanted", "got", "rows"), [(128, 512, 32), (128, 64, 32), (100, 7, 32)])
    def test_from_a_text_a_table_that_is_no_map_is_a_table(self, wanted, got, rows):
        assert RULE.from_layer(CRASH, linear(wanted, got, None, rows=rows)).severity == "error"

    def test_in_keras_the_words_are_those_of_keras(self):
        symptom = LayerMisfit(784, 28, "Dense", "dense", None, (None, 28, 28), 2, library="keras")
        assert RULE.from_layer(CRASH, symptom).severity == "error"
        symptom = LayerMisfit(3, 32, "Conv2D", "conv2d", None, (None, 3, 32, 32), 3, library="keras")
        assert RULE.from_layer(CRASH, symptom).severity == "error"
        symptom = LayerMisfit(4, 5, None, "dense", None, (None, 5), 1, library="keras")
        assert RULE.from_layer(CRASH, symptom).severity == "error"


class TestFromAxes:
    def test_names_the_shape_and_the_values_that_make_an_image(self):
        assert (
            RULE.from_axes(CRASH, AxesMisfit("3 or 4", 2, "Conv2d", "model.stem", (32, 784), 1)).severity
            == "error"
        )

    @pytest.mark.parametrize(
        "symptom",
        [
            AxesMisfit("3 or 4", 5, "Conv2d", None, (2, 8, 1, 28, 28), 1),
            AxesMisfit("3", 2, "Conv1d", "model.first", (288, 80), 80),
            AxesMisfit("4", 3, "Conv2d", None, (3, 32, 32), 3),
            AxesMisfit("4", 3, "BatchNorm2d", None, (8, 28, 28), 1),
            AxesMisfit("4", 2, "BatchNorm2d", None, (8, 3), 3),
            AxesMisfit("at least 4", 3, "Conv2D", "conv", (None, 28, 28), library="keras"),
            AxesMisfit("3", 2, "LSTM", "lstm_1", (None, 16), library="keras"),
        ],
        ids=["too many", "channels last", "no batch", "no channels", "too few", "keras", "stacked LSTM"],
    )
    def test_says_how_to_come_by_the_axes(self, symptom):
        assert RULE.from_axes(CRASH, symptom).severity == "error"


class TestFromOperands:
    def test_names_the_sizes_and_the_tensors(self):
        tensors = {"h": (32, 10), "w": (32,)}
        finding = RULE.from_operands(CRASH, OperandsMisfit("element-wise", 10, 32, 1, (), tensors))
        assert finding.evidence["tensors"] == {"h": [32, 10], "w": [32]}

    @pytest.mark.parametrize(
        ("operation", "a", "b"),
        [
            ("matrix product", (2, 3), (4, 3)),
            ("matrix product", (3, 2), (3, 5)),
            ("element-wise", (2, 3), (3, 2)),
            ("element-wise", (2, 3), (2, 4)),
        ],
    )
    def test_transposes_one_where_that_makes_them_fit(self, operation, a, b):
        other = b[0] if operation == "matrix product" else b[-1]
        symptom = OperandsMisfit(operation, a[-1], other, None, (), {"a": a, "b": b})
        assert RULE.from_operands(CRASH, symptom).severity == "error"

    def test_a_product_without_its_tensors_may_be_a_linear(self):
        symptom = OperandsMisfit("matrix product", 4096, 1024, None, ((32, 4096), (1024, 10)))
        assert RULE.from_operands(CRASH, symptom).fix.startswith("use nn.Linear(4096, 10), if this is")
        vector = OperandsMisfit("matrix product", 4096, 1024, None, ((32, 4096), (1024,)))
        assert "Linear" not in RULE.from_operands(CRASH, vector).message

    def test_names_the_optimizer_whose_state_has_another_size(self):
        finding = RULE.from_operands(CRASH, OperandsMisfit("optimizer step", 37, 61, 0))
        assert finding.evidence["sizes"] == [37, 61]

    def test_of_a_concatenation_one_short(self):
        assert RULE.from_operands(CRASH, OperandsMisfit("concatenation", 56, 57, 1)).severity == "error"

    def test_of_a_concatenation_along_the_wrong_axis(self):
        symptom = OperandsMisfit("concatenation", 4, 5, 1, (), {"parts[0]": (4, 3), "parts[1]": (5, 3)})
        assert RULE.from_operands(CRASH, symptom).severity == "error"


class TestFromReshape:
    def test_a_smaller_batch_than_was_written_out(self):
        assert RULE.from_reshape(CRASH, ReshapeMisfit((32, 128), 2176, "x", (17, 128))).severity == "error"

    def test_more_rows_than_were_written_out_are_no_smaller_batch(self):
        assert RULE.from_reshape(CRASH, ReshapeMisfit((616, 1, 40), 49280)).severity == "error"

    def test_a_square_may_be_an_image_of_another_size(self):
        assert RULE.from_reshape(CRASH, ReshapeMisfit((256, 256, 1), 8192)).severity == "error"

    def test_weights_of_a_convolution_may_come_from_a_file(self):
        assert RULE.from_reshape(CRASH, ReshapeMisfit((128, 64, 3, 3), 23630)).severity == "error"

    def test_another_number_of_values_for_each_example(self):
        assert RULE.from_reshape(CRASH, ReshapeMisfit((-1, 1600), 32768, "x", (32, 64, 4, 4))).severity == "error"


class TestFromWeights:
    def test_a_head_of_another_size_can_be_replaced_after_loading(self):
        weights = {"fc.weight": ((10, 128), (5, 128)), "fc.bias": ((10,), (5,))}
        assert RULE.from_weights(CRASH, WeightsMisfit("Net", weights)).severity == "error"

    def test_a_model_of_other_sizes_names_four(self):
        weights = {f"layers.{n}.weight": ((8, 8), (4, 4)) for n in range(6)}
        finding = RULE.from_weights(CRASH, WeightsMisfit("Net", weights))
        assert len(finding.evidence["weights"]) == 6


class TestSizesOfJoinedExamples:
    def test_names_images_feature_maps_and_short_axes(self):
        for sizes in [(1024, 910), (56, 57), (28, 56), (3, 8)]:
            assert RULE.from_operands(CRASH, OperandsMisfit("concatenation", *sizes, 0)).severity == "error"


def test_a_sequence_with_its_channels_last_is_thought_of():
    assert (
        RULE.from_layer(CRASH, LayerMisfit(80, 1000, "Conv1d", shape=(1, 1000, 513), axis=1)).severity == "error"
    )
