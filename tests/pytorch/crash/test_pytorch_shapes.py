"""Real failures of PyTorch over shapes, recognised live and from what Python prints of them."""

import pytest
import torch
from torch import nn
from transformers import BertForSequenceClassification

import diagnostics
from diagnostics.facts.crash.shapes import AxesMisfit, LayerMisfit, OperandsMisfit, ReshapeMisfit, WeightsMisfit
from tests.support.crashes import explained, failure, live, printed, text
from tests.support.tiny_bert import bert

pytestmark = pytest.mark.filterwarnings("ignore")

R = torch.randn


class Net(nn.Module):
    """Some layers, and a head after them."""

    def __init__(self, head, *layers):
        super().__init__()
        self.features = nn.Sequential(*layers)
        self.head = head

    def forward(self, x):
        x = self.features(x)
        return self.head(x)


def crashing(head, *shape):
    model = Net(head)
    return lambda: model(R(*shape))


class TestOptimizer:
    @pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
    def test_a_step_after_a_parameter_was_resized(self, kind):
        table = nn.Embedding(37, 8)
        optimizer = kind(table.parameters(), 0.01, **({"momentum": 0.9} if kind is torch.optim.SGD else {}))
        table(torch.tensor([1])).sum().backward()
        optimizer.step()
        table.weight.data = torch.cat([table.weight.data, R(24, 8)])
        table.weight.grad = None
        table(torch.tensor([40])).sum().backward()
        for read in (live, text):
            _, symptom = read(optimizer.step)
            assert symptom == OperandsMisfit("optimizer step", 37, 61, 0)


class TestLinear:
    @pytest.mark.parametrize("shape", [(32, 512), (4, 7, 512), (512,)], ids=["table", "words", "one"])
    def test_the_frames_hold_the_layer_and_the_input(self, shape):
        run = crashing(nn.Linear(128, 10), *shape)
        crash, symptom = live(run)
        assert symptom == LayerMisfit(
            128, 512, "Linear", "Net.head", "in_features", shape, len(shape) - 1, rebuilt="nn.Linear({}, 10)"
        )
        assert crash.where.function == "forward"
        _, symptom = text(run)
        assert (symptom.layer, symptom.path, symptom.wanted, symptom.got) == ("Linear", "self.head", 128, 512)
        assert symptom.rebuilt == "nn.Linear({}, 10)"

    def test_one_call_finds_what_was_not_flattened(self):
        model = Net(nn.Linear(1352, 10), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2))
        live, text = explained(failure(lambda: model(R(32, 1, 28, 28))))
        assert live.message == (
            "Net.head (Linear) has in_features=1352, but its input has shape (32, 8, 13, 13), with "
            "size 13 along axis 3. Flattened, each example has 8 x 13 x 13 = 1352 values."
        )
        assert live.fix == "call x.flatten(1) before this layer"
        assert text.message == (
            "self.head (Linear) has in_features=1352, but its input has 3,328 rows of size 13. Its 3,328 rows "
            "of 13 values may be 32 examples of 1352 values that were not flattened, or lack the batch axis, so "
            "that flatten(1) kept the channels as rows."
        )

    def test_a_layer_within_layers_is_named_as_python_reaches_it(self):
        model = nn.ModuleDict({"body": nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Linear(5, 2)))})
        _, symptom = live(lambda: model["body"](R(3, 4)))
        assert symptom.path == "Sequential[1][1]"
        net = Net(nn.Identity(), nn.Linear(3, 3), nn.Linear(4, 4))
        _, symptom = live(lambda: net(R(2, 3)))
        assert symptom.path == "Net.features[1]"
        _, symptom = text(lambda: net(R(2, 3)))
        assert symptom.path is None  # the line calls the Sequential, not the layer

    def test_a_product_of_the_users_own_within_a_module_is_no_layer(self):
        class Own(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(R(4, 5))

            def forward(self, x):
                return x @ self.weight

        model = Own()
        _, symptom = live(lambda: model(R(8, 3)))
        assert symptom == OperandsMisfit(
            "matrix product", 3, 4, None, ((8, 3), (4, 5)), {"x": (8, 3), "self.weight": (4, 5)}
        )

    def test_a_class_that_derives_from_it_keeps_its_name(self):
        class Scaled(nn.Linear):
            def forward(self, x):
                return super().forward(2 * x)

        _, symptom = live(crashing(Scaled(4, 2), 3, 5))
        assert (symptom.layer, symptom.path, symptom.shape) == ("Scaled", "Net.head", (3, 5))


class TestOtherLayers:
    @pytest.mark.parametrize(
        ("layer", "shape", "setting", "wanted", "got", "axis", "rebuilt"),
        [
            (nn.Conv1d(16, 8, 3), (4, 50, 16), "in_channels", 16, 50, 1, "nn.Conv1d({}, 8, ...)"),
            (nn.Conv2d(3, 8, 3), (8, 1, 28, 28), "in_channels", 3, 1, 1, "nn.Conv2d({}, 8, ...)"),
            (nn.Conv2d(1, 8, 3), (32, 28, 28), "in_channels", 1, 32, 0, "nn.Conv2d({}, 8, ...)"),
            (nn.Conv3d(2, 8, 3), (4, 5, 9, 9, 9), "in_channels", 2, 5, 1, "nn.Conv3d({}, 8, ...)"),
            (
                nn.ConvTranspose2d(16, 8, 3),
                (4, 5, 9, 9),
                "in_channels",
                16,
                5,
                1,
                "nn.ConvTranspose2d({}, 8, ...)",
            ),
            (nn.BatchNorm1d(64), (4, 10), "num_features", 64, 10, 1, "nn.BatchNorm1d({})"),
            (nn.BatchNorm2d(3), (4, 5, 9, 9), "num_features", 3, 5, 1, "nn.BatchNorm2d({})"),
            (nn.GroupNorm(2, 64), (4, 10, 64), None, 64, 10, 1, None),
            (nn.LayerNorm(64), (4, 10, 32), "normalized_shape", 64, 32, 2, "nn.LayerNorm({})"),
            (nn.RNN(10, 20), (4, 7, 5), "input_size", 10, 5, 2, "nn.RNN({}, 20, ...)"),
            (nn.LSTM(10, 20), (4, 7, 5), "input_size", 10, 5, 2, "nn.LSTM({}, 20, ...)"),
            (nn.GRU(10, 20), (4, 7, 5), "input_size", 10, 5, 2, "nn.GRU({}, 20, ...)"),
            (nn.LSTMCell(10, 20), (4, 5), "input_size", 10, 5, 1, "nn.LSTMCell({}, 20, ...)"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
    )
    def test_the_frames_hold_the_layer_and_the_input(self, layer, shape, setting, wanted, got, axis, rebuilt):
        run = crashing(layer, *shape)
        _, symptom = live(run)
        name = type(layer).__name__
        assert symptom == LayerMisfit(wanted, got, name, "Net.head", setting, shape, axis, rebuilt=rebuilt)
        _, symptom = text(run)
        assert (symptom.path, symptom.wanted, symptom.got) == ("self.head", wanted, got)

    def test_an_attention_within_a_layer_of_torchs_own(self):
        model = nn.TransformerEncoderLayer(16, 2)
        _, symptom = live(lambda: model(R(4, 7, 32)))
        assert symptom == LayerMisfit(
            16,
            32,
            "MultiheadAttention",
            "TransformerEncoderLayer.self_attn",
            "embed_dim",
            rebuilt="nn.MultiheadAttention({}, ...)",
        )

    def test_channels_last_are_seen_in_the_text_too(self):
        model = Net(nn.Conv2d(3, 8, 3))
        for finding in explained(failure(lambda: model(R(8, 28, 28, 3)))):
            assert finding.message.endswith(
                "(Conv2d) has in_channels=3, but its input has shape (8, 28, 28, 3), with size 28 along axis 1. "
                "The input's last axis has size 3: the channels are last, but this layer expects them first."
            )
            assert finding.fix == "call x.permute(0, 3, 1, 2) before this layer"

    @pytest.mark.parametrize(
        ("layer", "shape", "wanted", "channels"),
        [
            (nn.Conv2d(1, 8, 3), (32, 784), "3 or 4", 1),
            (nn.Conv1d(3, 8, 3), (2, 3, 4, 5), "2 or 3", 3),
            (nn.ConvTranspose2d(3, 8, 3), (4, 3), "3 or 4", 3),
            (nn.BatchNorm2d(3), (4, 3), "4", 3),
            (nn.BatchNorm1d(3), (4, 3, 2, 2), "2 or 3", 3),
            (nn.LSTM(10, 20), (4, 10, 5, 3), "2 or 3", None),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
    )
    def test_too_many_or_too_few_axes(self, layer, shape, wanted, channels):
        run = crashing(layer, *shape)
        _, symptom = live(run)
        assert symptom == AxesMisfit(wanted, len(shape), type(layer).__name__, "Net.head", shape, channels)
        _, symptom = text(run)
        assert (symptom.wanted, symptom.got, symptom.path) == (wanted, len(shape), "self.head")


class TestOperands:
    def test_an_element_wise_operation_names_its_tensors(self):
        h, bias = R(8, 4), R(8, 3)
        _, symptom = live(lambda: h + bias)
        assert symptom == OperandsMisfit("element-wise", 4, 3, 1, (), {"h": (8, 4), "bias": (8, 3)})
        _, symptom = text(lambda: h + bias)
        assert symptom == OperandsMisfit("element-wise", 4, 3, 1)

    def test_of_more_tensors_in_the_line_it_names_none(self):
        a, b, c = R(8, 4), R(8, 3), R(8, 4)
        _, symptom = live(lambda: a + c - b)
        assert symptom == OperandsMisfit("element-wise", 4, 3, 1)

    def test_a_tensor_that_was_changed_on_the_way_is_not_taken_for_the_operand(self):
        a, b = R(4, 8), R(8, 3)
        _, symptom = live(lambda: a.T + b)
        assert symptom == OperandsMisfit("element-wise", 4, 3, 1)

    def test_a_product_of_batches(self):
        a, b = R(8, 4, 5), R(8, 4, 5)
        for run in (lambda: torch.bmm(a, b), lambda: a @ b):
            _, symptom = live(run)
            assert symptom == OperandsMisfit("matrix product", 5, 4, None, (), {"a": (8, 4, 5), "b": (8, 4, 5)})
            assert text(run)[1] == OperandsMisfit("matrix product", 5, 4)

    def test_a_concatenation(self):
        up, skip = R(1, 8, 56, 56), R(1, 8, 57, 56)
        live, _ = explained(failure(lambda: torch.cat([up, skip], 1)))
        assert live.message == (
            "Tensors cannot be concatenated along axis 1: all other axes must match, but one has size "
            "56 in one tensor and 57 in another. Shapes: up (1, 8, 56, 56) and skip (1, 8, 57, 56). A "
            "feature map with an odd size loses one row or column when it is pooled by 2 and upsampled by 2."
        )
        parts = [R(4, 3), R(5, 3)]
        live, _ = explained(failure(lambda: torch.cat(parts, 1)))
        assert (live.fix, *live.alternatives) == (
            "concatenate the tensors along axis 0, the only axis along which their sizes differ",
            "make all tensors the same size along axis 0",
        )


class TestReshape:
    def test_the_frames_hold_the_tensor(self):
        x = R(17, 128)
        _, symptom = live(lambda: x.view(32, 128))
        assert symptom == ReshapeMisfit((32, 128), 2176, "x", (17, 128))
        assert text(lambda: x.view(32, 128))[1] == ReshapeMisfit((32, 128), 2176)
        _, symptom = live(lambda: x.relu().reshape(-1, 100))
        assert symptom == ReshapeMisfit((-1, 100), 2176)


class TestWeights:
    def test_the_message_holds_every_shape(self):
        saved, model = Net(nn.Linear(128, 10)).state_dict(), Net(nn.Linear(128, 5))
        symptom = WeightsMisfit("Net", {"head.weight": ((10, 128), (5, 128)), "head.bias": ((10,), (5,))})
        for recognise in (live, text):
            assert recognise(lambda: model.load_state_dict(saved))[1] == symptom

    def test_of_transformers_they_are_in_a_frame_and_in_the_log(self, tmp_path):
        bert(num_labels=3).save_pretrained(tmp_path)
        error = failure(lambda: BertForSequenceClassification.from_pretrained(tmp_path, num_labels=5))
        (live,) = diagnostics.explain(error).findings
        assert live.message == (
            "The checkpoint and this BertForSequenceClassification have weights of different shapes: "
            "classifier.bias is (3,) in the checkpoint and (5,) in the model; classifier.weight "
            "is (3, 16) in the checkpoint and (5, 16) in the model."
        )
        assert live.fix == "from_pretrained(..., ignore_mismatched_sizes=True), which reinitialises these weights"
        table = (  # as transformers prints it
            "\x1b[1mBertForSequenceClassification LOAD REPORT\x1b[0m from: bert\n"
            "classifier.weight | MISMATCH | Reinit due to size mismatch - ckpt: torch.Size([3, 16]) vs "
            "model:torch.Size([5, 16])\n"
        )
        (text,) = diagnostics.explain(table + printed(error)).findings
        assert text.evidence["weights"] == {"classifier.weight": {"checkpoint": [3, 16], "model": [5, 16]}}
        (alone,) = diagnostics.explain(printed(error)).findings  # the table is not in it: its own words are left
        assert (alone.rule, "ignore_mismatched_sizes" in alone.message) == ("refused-call", True)

    def test_names_that_are_missing_are_another_matter(self):
        error = failure(lambda: nn.Linear(3, 2).load_state_dict({}))
        assert [finding.rule for finding in diagnostics.explain(error).findings] == ["checkpoint-keys-mismatch"]
