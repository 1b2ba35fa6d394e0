"""Real failures of the real frameworks, recognised live and from what Python prints of them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from transformers import (
    DistilBertConfig,
    DistilBertModel,
    GPT2Config,
    GPT2LMHeadModel,
)

import diagnostics
from diagnostics.collectors.crash.read import facts_of_exception
from diagnostics.facts.crash import DevicesDiffer
from diagnostics.facts.crash.data import (
    LabelBeyondOutputs,
    LossMissing,
    NoPathToParameters,
    NotProbabilities,
    ShapesDiffer,
    TokenBeyondEmbedding,
)
from diagnostics.facts.crash.shapes import OperandsMisfit
from tests.support.crashes import explained, facts_of_text, failure, live, recognised, text
from tests.support.tiny_bert import bert, tokenized_rows, tokenizer, trainer

pytestmark = pytest.mark.filterwarnings("ignore")


LABELS = torch.tensor([0, 2, 1, 2])


class TestLabelBeyondOutputs:
    @pytest.mark.parametrize(
        ("run", "label", "num_outputs", "count"),
        [
            (lambda: F.cross_entropy(torch.randn(4, 2), LABELS), 2, 2, 4),
            (lambda: F.nll_loss(torch.randn(4, 2), LABELS), 2, 2, 4),
            (lambda: F.cross_entropy(torch.randn(4, 3), LABELS - 1), -1, 3, 4),
            (lambda: nn.CrossEntropyLoss()(torch.randn(2, 3, 4, 4), torch.full((2, 4, 4), 5)), 5, 3, 32),
            (lambda: F.cross_entropy(torch.randn(2, 3, 5), torch.full((2, 5), 3)), 3, 3, 10),
            (lambda: F.cross_entropy(torch.randn(3), torch.tensor(3)), 3, 3, 1),
        ],
        ids=["cross_entropy", "nll_loss", "negative", "pixels", "words", "single"],
    )
    def test_the_frames_hold_labels_and_outputs(self, run, label, num_outputs, count):
        crash, symptom = live(run)
        assert crash.exception == "IndexError"
        assert isinstance(symptom, LabelBeyondOutputs)
        assert (symptom.label, symptom.num_outputs, symptom.labels.size) == (label, num_outputs, count)
        assert symptom.ignore_index == -100
        crash, symptom = text(run)
        assert symptom == LabelBeyondOutputs(label=label)

    def test_the_fix_is_in_the_words_of_the_model_that_is_in_the_frames(self):
        def run():
            trainer(
                tokenized_rows().map(lambda row: {"label": row["label"] + 1}), processing_class=tokenizer()
            ).train()

        crash, symptom = live(run)
        assert symptom.num_outputs == 2
        assert sorted(symptom.labels.tolist()) == [1, 1, 2, 2]
        assert symptom.outputs_setting == (
            "AutoModelForSequenceClassification.from_pretrained(..., num_labels={})"
        )
        assert crash.where.function == "run"
        assert crash.frames[-1].function == "cross_entropy"


class TestTokenBeyondEmbedding:
    def test_the_frames_hold_ids_and_rows(self):
        def run():
            bert()(input_ids=torch.tensor([[2, 9, 3]]))

        _, symptom = live(run)
        assert isinstance(symptom, TokenBeyondEmbedding)
        assert symptom.ids.tolist() == [[2, 9, 3]]
        assert symptom.rows == 8
        _, symptom = text(run)
        assert symptom == TokenBeyondEmbedding()

    def test_positions_past_the_last_are_seen_too(self):
        model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=4, n_embd=16, n_layer=1, n_head=2))
        _, symptom = live(lambda: model(input_ids=torch.zeros(1, 6, dtype=torch.long)))
        assert symptom.ids.tolist() == [[0, 1, 2, 3, 4, 5]]
        assert symptom.rows == 4

    def test_positions_that_a_model_keeps_ready_are_seen_too(self):
        token_types = bert(max_position_embeddings=8)
        table = DistilBertModel(
            DistilBertConfig(vocab_size=8, dim=16, n_layers=1, n_heads=2, hidden_dim=16, max_position_embeddings=8)
        )
        for model in (token_types, table):
            for finding in explained(failure(lambda m=model: m(input_ids=torch.ones(2, 12, dtype=torch.long)))):
                assert finding.rule == "token-ids-out-of-range"
                assert finding.message.endswith(
                    "positions, not tokens: a sequence length of 12 exceeds the model's maximum length."
                )


class TestLossMissing:
    def test_the_message_holds_what_came_and_what_went(self):
        def run():
            rows = tokenized_rows().rename_column("label", "target")
            trainer(rows, processing_class=tokenizer()).train()

        for crash, symptom in (live(run), text(run)):
            assert isinstance(symptom, LossMissing)
            assert symptom.returned == ("logits",)
            assert sorted(symptom.received) == ["attention_mask", "input_ids", "token_type_ids"]
            assert symptom.unread == (("target",) if crash.live else ())

    def test_an_examination_finds_the_column_as_well(self):
        rows = tokenized_rows().rename_column("label", "target")
        (finding,) = diagnostics.examine(trainer(rows, processing_class=tokenizer())).findings
        assert finding.rule == "labels-missing"
        assert 'dataset.rename_column("target", "labels")' in finding.fix


class TestNoPathToParameters:
    def test_a_detached_loss(self):
        layer = nn.Linear(3, 1)
        crash, symptom = live(lambda: layer(torch.randn(2, 3)).detach().sum().backward())
        assert symptom == NoPathToParameters()
        assert crash.where.function == "<lambda>"

    def test_a_frozen_model_and_a_no_grad_block(self):
        frozen, layer = nn.Linear(3, 1).requires_grad_(False), nn.Linear(3, 1)

        def without_gradients():
            with torch.no_grad():
                loss = layer(torch.randn(2, 3)).sum()
            loss.backward()

        for run in (lambda: frozen(torch.randn(2, 3)).sum().backward(), without_gradients):
            assert live(run)[1] == NoPathToParameters()
            assert text(run)[1] == NoPathToParameters()


class TestShapesDiffer:
    @pytest.mark.parametrize(
        ("run", "live_symptom", "text_symptom"),
        [
            (
                lambda: nn.BCEWithLogitsLoss()(torch.randn(4, 1), torch.ones(4)),
                ShapesDiffer((4, 1), (4,)),
                ShapesDiffer((4, 1), (4,)),
            ),
            (
                lambda: nn.BCELoss()(torch.rand(4, 1), torch.ones(4)),
                ShapesDiffer((4, 1), (4,)),
                ShapesDiffer((4, 1), (4,)),
            ),
            (
                lambda: F.cross_entropy(torch.randn(8, 3), torch.zeros(4, dtype=torch.long)),
                ShapesDiffer((8, 3), (4,)),
                ShapesDiffer(rows=(8, 4)),
            ),
            (
                lambda: F.cross_entropy(torch.randn(4, 3), torch.eye(3, dtype=torch.long)[[0, 1, 2, 1]]),
                ShapesDiffer((4, 3), (4, 3)),
                ShapesDiffer(),
            ),
            (
                lambda: F.cross_entropy(torch.randn(4, 3), torch.zeros(4, 1, dtype=torch.long)),
                ShapesDiffer((4, 3), (4, 1), wants_indices=True),
                ShapesDiffer(wants_indices=True),
            ),
            (
                lambda: F.cross_entropy(torch.randn(2, 3, 5), torch.zeros(2, 4, dtype=torch.long)),
                ShapesDiffer((2, 3, 5), (2, 4)),
                ShapesDiffer(asked=((2, 5), (2, 4))),
            ),
            (
                lambda: F.mse_loss(torch.randn(4, 3), torch.randn(4, 2)),
                ShapesDiffer((4, 3), (4, 2)),
                ShapesDiffer(),
            ),
        ],
        ids=["binary logits", "binary", "batch", "one-hot", "column", "words", "values"],
    )
    def test_the_frames_hold_both_shapes(self, run, live_symptom, text_symptom):
        crash, symptom = live(run)
        assert symptom == live_symptom
        assert crash.where.function == "<lambda>"
        assert text(run)[1] == text_symptom

    def test_shapes_that_clash_elsewhere_are_another_matter(self):
        error = failure(lambda: torch.randn(4, 3) - torch.randn(4, 2))
        assert recognised(error) == (OperandsMisfit("element-wise", 3, 2, 1),) * 2


class TestNotProbabilities:
    def test_the_frames_hold_the_range(self):
        def run():
            nn.BCELoss()(torch.tensor([-1.5, 0.5, 2.5]), torch.ones(3))

        crash, symptom = live(run)
        assert symptom == NotProbabilities(-1.5, 2.5)
        assert crash.where.function == "run"
        assert text(run)[1] == NotProbabilities()

    def test_a_nan_or_a_target_out_of_range_is_another_matter(self):
        for prediction, target in (([float("nan")], [1.0]), ([0.5], [2.0])):
            error = failure(lambda p=prediction, t=target: nn.BCELoss()(torch.tensor(p), torch.tensor(t)))
            assert not any(isinstance(fact, NotProbabilities) for fact in facts_of_exception(error))


class TestDevicesDiffer:
    def test_the_frames_hold_where_each_tensor_is(self):
        def run():
            logits, labels = torch.randn(2, 3, device="meta"), torch.tensor([0, 1])
            return logits[labels] + labels[:, None] * torch.randn(2, 3)

        crash, symptom = live(run)
        assert isinstance(symptom, DevicesDiffer)
        assert set(symptom.devices) == {"meta", "cpu"}
        assert set(symptom.tensors.values()) == {"meta", "cpu"}
        assert crash.where.function == "run"
        _, symptom = text(run)
        assert set(symptom.devices) == {"meta", "cpu"}
        assert symptom.tensors == {}

    @pytest.mark.parametrize("loss", ["CrossEntropyLoss(weight", "BCEWithLogitsLoss(pos_weight"])
    def test_the_weights_of_a_loss_are_no_part_of_a_model(self, loss):
        name, _, argument = loss.partition("(")
        criterion = getattr(nn, name)(**{argument: torch.ones(2)})
        targets = torch.zeros(4, 2, device="meta")
        error = failure(lambda: criterion(torch.zeros(4, 2, device="meta"), targets))
        (finding,) = diagnostics.explain(error).findings
        assert finding.fix == f'{argument} = {argument}.to("meta"), where your code creates it'

    def test_a_parameter_moves_with_its_module_and_an_input_by_itself(self):
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(3))

            def forward(self, x):
                return x * self.scale

        error = failure(lambda: Scaled()(torch.zeros(2, 3, device="meta")))
        (finding,) = diagnostics.explain(error).findings
        assert finding.fix.startswith("move the model to the batch's device")
        (finding,) = diagnostics.explain(failure(lambda: Scaled().to("meta")(torch.zeros(2, 3)))).findings
        assert finding.fix == 'x = x.to("meta"), where your code creates it'

    @pytest.mark.parametrize(
        ("message", "devices", "odd"),
        [
            (
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
                "(when checking argument for argument mat1 in method wrapper_CUDA_addmm)",
                ("cuda:0", "cpu"),
                ("mat1", "cpu"),
            ),
            (
                "Expected all tensors to be on the same device, but got index is on cpu, different from other "
                "tensors on cuda:1 (when checking argument in method wrapper_CUDA__index_select)",
                ("cpu", "cuda:1"),
                ("index", "cpu"),
            ),
        ],
        ids=["two devices", "index"],
    )
    def test_the_words_of_a_machine_with_a_card(self, message, devices, odd):
        # The two wordings in PyTorch's source; the machines that this runs on have no card to say them.
        _, symptom = facts_of_text(f"Traceback (most recent call last):\nRuntimeError: {message}")
        assert symptom == DevicesDiffer(devices, odd=odd)


class TestMetricOnLogits:
    @pytest.mark.parametrize(
        ("scores", "shape"),
        [(np.random.randn(4, 3), "(4, 3)"), (np.random.randn(4), "(4,)")],
        ids=["classes", "one"],
    )
    def test_the_line_that_failed_holds_the_shape_of_the_scores(self, scores, shape):
        found, quoted = explained(failure(lambda: accuracy_score(np.array([0, 1, 2, 1]), scores)))
        assert (found.rule, quoted.rule) == ("metric-on-logits", "metric-on-logits")
        assert f"scores is a float64 array of shape {shape}" in found.message

    @pytest.mark.parametrize(
        "run",
        [
            lambda: f1_score(np.random.randn(4, 3), np.array([0, 1, 2, 1])),
            lambda: accuracy_score(np.zeros((4, 5)), np.random.randn(4, 5, 3)),
        ],
        ids=["swapped", "words"],
    )
    def test_scores_of_any_shape_are_no_classes(self, run):
        assert [finding.rule for finding in explained(failure(run))] == ["metric-on-logits"] * 2

    @pytest.mark.parametrize(
        ("dtype", "predictions", "symptoms"),
        [
            ("int32", "[[-0.8222086   0.16853483]\n [ 1.0815704  -0.151]]", ["metric-on-logits"]),
            ("int32", "tensor([[-0.8222,  0.1685]])", ["metric-on-logits"]),
            ("int32", "[0.1685, 0.25]", ["metric-on-logits"]),
            ("int32", "[[17 4 9]\n [8 0 0]]", []),
            ("string", "[[-0.8222086   0.16853483]]", []),
        ],
        ids=["scores", "a tensor", "one score", "tokens", "a metric of texts"],
    )
    def test_the_words_of_evaluate(self, dtype, predictions, symptoms):
        # As they stand in its source; that package is not among those of the zoo.
        _, *found = facts_of_text(
            "Traceback (most recent call last):\n"
            "ValueError: Predictions and/or references don't match the expected format.\n"
            f"Expected format: {{'predictions': Value('{dtype}'), 'references': Value('{dtype}')}},\n"
            f"Input predictions: {predictions},\nInput references: [0 1]"
        )
        assert [fact.rule for fact in found if getattr(fact, "rule", "") == "metric-on-logits"] == symptoms


class TestUnknownFailures:
    def test_variables_that_cannot_be_looked_at_do_no_harm(self):
        class Hostile:
            def __getattr__(self, name):
                raise RuntimeError("do not touch")

            def __len__(self):
                raise RuntimeError("do not touch")

        def run():
            input = target = features = batch = inputs = self = Hostile()  # noqa: F841
            F.cross_entropy(torch.randn(4, 2), LABELS)

        _, symptom = live(run)
        assert symptom.label == 2
