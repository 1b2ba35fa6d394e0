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
        assert finding.message == (
            "model.fc (Linear) has in_features=128, but its input has shape (32, 512), with 512 along axis 1."
        )
        assert finding.fix == "nn.Linear(512, 10) for model.fc"
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
        ("symptom", "seen", "fix"),
        [
            (
                linear(1600, 5, (32, 64, 5, 5)),
                "Flattened, each example has 64 x 5 x 5 = 1600 values.",
                "x.flatten(1) before it",
            ),
            (
                linear(1000, 5, (32, 64, 5, 5)),
                "Flattened, each example would have 1600 values, not 1000.",
                "x.flatten(1) before it and nn.Linear(1600, 10) for model.fc",
            ),
            (
                linear(64, 5, (32, 64, 5, 5)),
                "Its axis 1 has size 64.",
                (
                    "x.mean((2, 3)) before it, which averages over each feature map; or: x.movedim(1, -1) "
                    "before it, which keeps the positions"
                ),
            ),
            (linear(64, 50, (32, 64, 50)), "Its axis 1 has size 64.", "x.transpose(1, 2) before it"),
            (
                linear(784, 25088, (25088,)),
                "25088 is 32 x 784, the size of a batch of 32 flattened from axis 0.",
                (
                    "x.flatten(1), which keeps the batch axis, if the batch has 32 examples; or: "
                    "nn.Linear(25088, 10) for model.fc"
                ),
            ),
            (
                conv(3, 28, (8, 28, 28, 3)),
                "Its last axis has size 3: the channels are last, and this layer takes channels first.",
                "x.permute(0, 3, 1, 2) before it",
            ),
            (
                conv(3, 28, (28, 28, 3), axis=0),
                "Its last axis has size 3: the channels are last, and this layer takes channels first.",
                "x.movedim(-1, 0) before it",
            ),
            (
                conv(1, 32, (32, 28, 28), axis=0),
                "Without a channel axis it is read as one example with 32 channels.",
                "x.unsqueeze(1) before it",
            ),
            (
                conv(3, 1, (8, 1, 28, 28)),
                "The image is grayscale (1 channel) instead of RGB (3).",
                "nn.Conv2d(1, 8, ...) for model.stem; or: x.expand(-1, 3, -1, -1)",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) and "before" not in value else "",
    )
    def test_repairs_the_input_where_the_numbers_say_so(self, symptom, seen, fix):
        finding = RULE.from_layer(CRASH, symptom)
        assert finding.message.endswith(f". {seen}")
        assert "; or: ".join((finding.fix, *finding.alternatives)) == fix

    @pytest.mark.parametrize(
        "symptom",
        [linear(128, 512, (128, 7, 512)), linear(100, 512, (4, 7, 512)), conv(16, 8, (4, 8, 16, 16))],
        ids=["the batch's size", "none fits", "as wide as it wants channels"],
    )
    def test_changes_the_layer_where_they_do_not(self, symptom):
        finding = RULE.from_layer(CRASH, symptom)
        assert finding.message.endswith(f"with {symptom.got} along axis {symptom.axis}.")
        assert finding.fix == f"{symptom.rebuilt.format(symptom.got)} for {symptom.path}"

    def test_a_batch_as_large_as_the_layer_is_wide_may_be_chance(self):
        finding = RULE.from_layer(CRASH, linear(64, 50, (64, 50)))
        assert (finding.fix, *finding.alternatives) == (
            "nn.Linear(50, 10) for model.fc",
            "x.T before it, if its rows are the features",
        )

    def test_from_a_text_the_rows_of_a_table_may_be_what_was_not_flattened(self):
        finding = RULE.from_layer(CRASH, linear(784, 28, None, rows=896))
        assert finding.message == (
            "model.fc (Linear) has in_features=784, but its input has size 28, in 896 rows. If the input "
            "has more than two axes, its 896 rows of 28 are 32 examples of 784 that were not flattened."
        )
        assert (finding.fix, *finding.alternatives) == (
            "x.flatten(1) before it, if the input has more than two axes",
            "nn.Linear(28, 10) for model.fc",
        )

    @pytest.mark.parametrize(("wanted", "got", "rows"), [(128, 512, 32), (128, 64, 32), (100, 7, 32)])
    def test_from_a_text_a_table_that_is_no_map_is_a_table(self, wanted, got, rows):
        finding = RULE.from_layer(CRASH, linear(wanted, got, None, rows=rows))
        assert finding.message == (
            f"model.fc (Linear) has in_features={wanted}, but its input has size {got}, in {rows} rows."
        )
        assert finding.fix == f"nn.Linear({got}, 10) for model.fc"

    def test_in_keras_the_words_are_those_of_keras(self):
        symptom = LayerMisfit(784, 28, "Dense", "dense", None, (None, 28, 28), 2, library="keras")
        finding = RULE.from_layer(CRASH, symptom)
        assert finding.message == (
            "dense (Dense) was built for 784, but its input has shape (None, 28, 28), with 28 along axis "
            "2. Flattened, each example has 28 x 28 = 784 values."
        )
        assert finding.fix == "keras.layers.Flatten() before it"
        symptom = LayerMisfit(3, 32, "Conv2D", "conv2d", None, (None, 3, 32, 32), 3, library="keras")
        assert RULE.from_layer(CRASH, symptom).fix == "keras.ops.transpose(x, (0, 2, 3, 1)) before it"
        symptom = LayerMisfit(4, 5, None, "dense", None, (None, 5), 1, library="keras")
        assert RULE.from_layer(CRASH, symptom).fix == "give it an input of size 4, or build it for 5"


class TestFromAxes:
    def test_names_the_shape_and_the_values_that_make_an_image(self):
        finding = RULE.from_axes(CRASH, AxesMisfit("3 or 4", 2, "Conv2d", "model.stem", (32, 784), 1))
        assert finding.message == (
            "model.stem (Conv2d) takes inputs with 3 or 4 axes, but its input has shape (32, 784), with "
            "2. 784 is 1 x 28 x 28."
        )
        assert finding.fix == "x.view(-1, 1, 28, 28) before it, if each row is an image"

    @pytest.mark.parametrize(
        ("symptom", "fix"),
        [
            (
                AxesMisfit("3 or 4", 5, "Conv2d", None, (2, 8, 1, 28, 28), 1),
                "x.flatten(0, 1) before it, if the first two axes together are the batch",
            ),
            (
                AxesMisfit("3", 2, "Conv1d", "model.first", (288, 80), 80),
                "x.T.unsqueeze(0) before it, if it is one example without a batch axis",
            ),
            (
                AxesMisfit("4", 3, "Conv2d", None, (3, 32, 32), 3),
                "x.unsqueeze(0) before it, which adds the axis of the batch",
            ),
            (
                AxesMisfit("4", 3, "BatchNorm2d", None, (8, 28, 28), 1),
                "x.unsqueeze(1) before it, which adds the channel axis",
            ),
            (
                AxesMisfit("4", 2, "BatchNorm2d", None, (8, 3), 3),
                "reshape it to 4 axes: x.unsqueeze(...) adds an axis, x.view(...) splits one",
            ),
            (
                AxesMisfit("at least 4", 3, "Conv2D", "conv", (None, 28, 28), library="keras"),
                "x = x[..., None] before it, which adds an axis of size 1 at the end",
            ),
        ],
        ids=["too many", "channels last", "no batch", "no channels", "too few", "keras"],
    )
    def test_says_how_to_come_by_the_axes(self, symptom, fix):
        assert RULE.from_axes(CRASH, symptom).fix == fix


class TestFromOperands:
    def test_names_the_sizes_and_the_tensors(self):
        tensors = {"h": (32, 10), "w": (32,)}
        finding = RULE.from_operands(CRASH, OperandsMisfit("element-wise", 10, 32, 1, (), tensors))
        assert finding.message == (
            "An element-wise operation got sizes 10 and 32 along axis 1; they must be equal, or one of "
            "them 1. Shapes: h (32, 10) and w (32,). w lacks the last axis of the other."
        )
        assert finding.fix == "w.unsqueeze(-1)"
        assert finding.evidence["tensors"] == {"h": [32, 10], "w": [32]}

    @pytest.mark.parametrize(
        ("operation", "a", "b", "fix"),
        [
            ("matrix product", (2, 3), (4, 3), "transpose b: then its 3 rows match the 3 columns"),
            ("matrix product", (3, 2), (3, 5), "transpose a: then its 3 columns match the 3 rows"),
            ("element-wise", (2, 3), (3, 2), "b.T; or: a.T"),
            (
                "element-wise",
                (2, 3),
                (2, 4),
                "make the sizes equal, or 1 along an axis that should broadcast",
            ),
        ],
    )
    def test_turns_one_over_where_that_makes_them_fit(self, operation, a, b, fix):
        symptom = OperandsMisfit(operation, a[-1], b[-1], None, (), {"a": a, "b": b})
        finding = RULE.from_operands(CRASH, symptom)
        assert "; or: ".join((finding.fix, *finding.alternatives)) == fix

    def test_of_a_concatenation_one_short(self):
        finding = RULE.from_operands(CRASH, OperandsMisfit("concatenation", 56, 57, 1))
        assert finding.message == (
            "Tensors cannot be concatenated along axis 1: along another axis, where all must be equal, "
            "their sizes are 56 and 57. If these are feature maps: a feature map of odd size is one "
            "smaller after pooling by 2 and upsampling by 2."
        )
        assert (finding.fix, *finding.alternatives) == (
            "pad the smaller one (torch.nn.functional.pad)",
            "crop the larger one",
        )

    def test_of_a_concatenation_along_the_wrong_axis(self):
        symptom = OperandsMisfit("concatenation", 4, 5, 1, (), {"parts[0]": (4, 3), "parts[1]": (5, 3)})
        finding = RULE.from_operands(CRASH, symptom)
        assert (finding.fix, *finding.alternatives) == (
            "concatenate them along axis 0, the only one that differs",
            "make that axis equal",
        )


class TestFromReshape:
    def test_a_smaller_batch_than_was_written_out(self):
        finding = RULE.from_reshape(CRASH, ReshapeMisfit((32, 128), 2176, "x", (17, 128)))
        assert finding.message == (
            "x cannot be reshaped to (32, 128): it has shape (17, 128), which is 2176 values. It has 17 "
            "rows of 128, not 32: the last batch of a loader is often smaller."
        )
        assert finding.fix == "x.view(-1, 128), and x.size(0) wherever 32 is the batch size"

    def test_more_rows_than_were_written_out_are_no_smaller_batch(self):
        finding = RULE.from_reshape(CRASH, ReshapeMisfit((616, 1, 40), 49280))
        assert finding.message == (
            "A tensor cannot be reshaped to (616, 1, 40): it has 49280 values. It has 1232 rows of 40, 2 times as "
            "many as 616: the rows hold an axis that the code counts apart (heads, channels, positions, several "
            "inputs in one batch), or the examples are larger."
        )

    def test_a_square_may_be_an_image_of_another_size(self):
        finding = RULE.from_reshape(CRASH, ReshapeMisfit((256, 256, 1), 8192))
        assert finding.message.endswith(
            "If it is to be an image or a mask of 256 x 256, it was made in another size."
        )

    def test_weights_of_a_convolution_may_come_from_a_file(self):
        finding = RULE.from_reshape(CRASH, ReshapeMisfit((128, 64, 3, 3), 23630))
        assert "read from a file, the file ends too early" in finding.message

    def test_another_number_of_values_for_each_example(self):
        finding = RULE.from_reshape(CRASH, ReshapeMisfit((-1, 1600), 32768, "x", (32, 64, 4, 4)))
        assert finding.message.endswith("Each example has 1024 values, not 1600.")
        assert finding.fix == "x.flatten(1), and build the next layer for 1024"


class TestFromWeights:
    def test_a_head_of_another_size_can_be_replaced_after_loading(self):
        weights = {"fc.weight": ((10, 128), (5, 128)), "fc.bias": ((10,), (5,))}
        finding = RULE.from_weights(CRASH, WeightsMisfit("Net", weights))
        assert finding.message == (
            "The Net in the checkpoint and this one have weights of different shapes: fc.weight is (10, "
            "128) in the checkpoint and (5, 128) in the model; fc.bias is (10,) in the checkpoint and "
            "(5,) in the model. Only the number of outputs of fc differs."
        )
        assert finding.fix == "build Net with 10 outputs, as in the checkpoint, load, then replace fc"

    def test_a_model_of_other_sizes_names_four(self):
        weights = {f"layers.{n}.weight": ((8, 8), (4, 4)) for n in range(6)}
        finding = RULE.from_weights(CRASH, WeightsMisfit("Net", weights))
        assert finding.message.endswith("is (8, 8) in the checkpoint and (4, 4) in the model; and 2 more.")
        assert finding.fix == "build Net with the sizes in the checkpoint, then load"
        assert len(finding.evidence["weights"]) == 6


class TestSizesOfJoinedExamples:
    def said(self, one, other):
        return RULE.from_operands(CRASH, OperandsMisfit("concatenation", one, other, 0)).message

    def test_images_of_two_sizes_are_told_as_such(self):
        assert "If each belongs to an example, the examples of the batch have different sizes" in self.said(
            1024, 910
        )

    def test_feature_maps_and_short_axes_are_not(self):
        assert not any("an example" in self.said(*sizes) for sizes in [(56, 57), (28, 56), (3, 8)])


def test_a_sequence_with_its_channels_last_is_thought_of():
    finding = RULE.from_layer(CRASH, LayerMisfit(80, 1000, "Conv1d", shape=(1, 1000, 513), axis=1))
    assert finding.message.endswith("It takes (batch, channels, length).")
    assert finding.fix == (
        "x.transpose(1, 2) before it, if the last axis holds the channels, which then have to be 80, too"
    )
