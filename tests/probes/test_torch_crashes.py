"""Real failures of the real frameworks, recognised live and from what Python prints of them."""

import tempfile
import traceback

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from datasets import Dataset as HubDataset
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    DataCollatorWithPadding,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

from diagnostics.crash_facts import (
    DevicesDiffer,
    LabelBeyondOutputs,
    LossMissing,
    MetricGotLogits,
    NoPathToParameters,
    RaggedColumns,
    TokenBeyondEmbedding,
    TokensMissing,
)
from diagnostics.explanation import facts_of_exception, facts_of_text
from diagnostics.probes.torch_crashes import column_lengths

pytestmark = pytest.mark.filterwarnings("ignore")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]


def failure(run):
    """Return the exception that `run` raises, with its traceback."""
    try:
        run()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


def live(run):
    """Recognise a failure from the exception."""
    crash, *symptoms = facts_of_exception(failure(run))
    assert crash.live
    (symptom,) = symptoms
    return crash, symptom


def text(run):
    """Recognise the same failure from its text."""
    crash, *symptoms = facts_of_text("".join(traceback.format_exception(failure(run))))
    assert not crash.live
    (symptom,) = symptoms
    return crash, symptom


def bert(**settings):
    config = {
        "vocab_size": len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        **settings,
    }
    return BertForSequenceClassification(BertConfig(**config))


def tokenizer():
    return BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)})


def trainer(rows, **options):
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="crashes-"),
        report_to="none",
        max_steps=1,
        disable_tqdm=True,
        per_device_train_batch_size=4,
    )
    return Trainer(bert(), arguments, train_dataset=rows, **options)


def raw_rows():
    return HubDataset.from_dict({"text": ["a b", "c", "a", "b c"], "label": [0, 1, 0, 1]})


def tokenized_rows():
    tokens = tokenizer()
    return raw_rows().map(lambda row: tokens(row["text"]))


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


class Ragged(Dataset):
    """Rows of different lengths, made by a function of the length."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.make((3, 4, 5, 3)[index])


def first_batch(make, **options):
    return lambda: next(iter(DataLoader(Ragged(make), batch_size=4, **options)))


class TestRaggedColumns:
    @pytest.mark.parametrize(
        ("run", "lengths", "clash"),
        [
            (first_batch(lambda n: (torch.zeros(n), 1)), {"0": (3, 4, 5, 3)}, (3, 4)),
            (first_batch(lambda n: {"ids": torch.zeros(n), "label": 1}), {"ids": (3, 4, 5, 3)}, (3, 4)),
            (first_batch(lambda n: {"ids": [1] * n, "label": 1}), {"ids": (3, 4, 5, 3)}, None),
            (first_batch(lambda n: np.zeros((n, 2))), {"the examples": (3, 4, 5, 3)}, (3, 4)),
            (first_batch(lambda n: (torch.zeros(3, 8, n), 1)), {"0": (3, 4, 5, 3)}, (3, 4)),
            (lambda: torch.tensor([[1, 2], [3]]), {}, (2, 1)),
            (lambda: np.array([[1, 2], [3]], dtype=float), {}, None),
            (lambda: torch.stack([torch.zeros(3, 8, 8), torch.zeros(3, 8, 9)]), {}, (8, 9)),
        ],
        ids=["tuples", "dicts", "lists", "arrays", "images", "torch.tensor", "np.array", "torch.stack"],
    )
    def test_the_frames_hold_columns_and_lengths(self, run, lengths, clash):
        _, symptom = live(run)
        assert symptom == RaggedColumns(lengths, clash)
        _, symptom = text(run)
        assert symptom == RaggedColumns({}, clash)

    def test_in_the_trainer_without_anything_that_pads(self):
        def run():
            trainer(tokenized_rows()).train()

        crash, symptom = live(run)
        assert symptom.lengths.keys() == {"input_ids", "token_type_ids", "attention_mask"}
        assert sorted(symptom.lengths["input_ids"]) == [3, 3, 4, 4]
        assert set(symptom.clash) == {3, 4}
        assert crash.where.function == "run"
        _, symptom = text(run)
        assert symptom.lengths == {}
        assert set(symptom.clash) == {3, 4}

    def test_labels_that_the_padding_collator_leaves_as_they_are(self):
        features = [{"input_ids": [2] * n, "labels": [0] * n} for n in (4, 5)]

        def run():
            DataCollatorWithPadding(tokenizer())(features)

        crash, symptom = live(run)
        assert symptom == RaggedColumns({"labels": (4, 5)}, column="labels")  # input_ids were padded by then
        assert crash.where.function == "run"
        crash, symptom = text(run)
        assert symptom == RaggedColumns(column="labels")
        assert crash.where.function == "run"

    def test_a_tokenizer_called_without_padding(self):
        _, symptom = live(lambda: tokenizer()(["a b", "a"], return_tensors="pt"))
        assert symptom == RaggedColumns({"input_ids": (4, 3)}, column="input_ids")

    def test_in_the_worker_of_a_data_loader(self):
        run = first_batch(lambda n: (torch.zeros(n), 1), num_workers=2)
        for crash, symptom in (live(run), text(run)):
            assert symptom == RaggedColumns({}, (3, 4))  # a worker sends its text, not its frames
            assert crash.message.startswith("stack expects each tensor to be equal size")
            assert crash.frames[-1].function == "collate_tensor_fn"
            assert crash.where.function == "<lambda>"


class TestColumnLengths:
    def test_names_each_column_that_holds_sequences(self):
        examples = [
            {"ids": [1, 2], "mask": torch.ones(2), "label": 0},
            {"ids": [1], "mask": torch.ones(1), "label": 1},
        ]
        assert column_lengths(examples) == {"ids": (2, 1), "mask": (2, 1)}

    def test_columns_that_only_some_examples_have_are_left_out(self):
        assert column_lengths([{"ids": [1], "extra": [1]}, {"ids": [1, 2]}]) == {"ids": (1, 2)}

    def test_of_arrays_the_first_axis_that_differs(self):
        assert column_lengths([np.zeros((3, 8, 9)), np.zeros((3, 8, 7))]) == {"the examples": (9, 7)}

    @pytest.mark.parametrize("value", [None, "text", 3, [], [[1]], [1, 2], ["a", "bc"], {"a": [1]}])
    def test_anything_else_gives_nothing(self, value):
        assert column_lengths(value) == {}


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


class TestTokensMissing:
    def test_the_raw_dataset_in_a_trainer(self):
        def run():
            trainer(raw_rows()).train()

        crash, symptom = live(run)
        assert symptom == TokensMissing(("labels",), ("text",))
        assert crash.where.function == "run"
        _, symptom = text(run)
        assert symptom == TokensMissing(None, None)

    def test_the_raw_dataset_in_a_trainer_with_a_tokenizer(self):
        def run():
            trainer(raw_rows(), processing_class=tokenizer()).train()

        _, symptom = live(run)
        assert symptom == TokensMissing(("label",), ("text",))
        _, symptom = text(run)
        assert symptom == TokensMissing(("label",), None)

    def test_a_dataset_that_loses_all_its_columns(self):
        def run():
            trainer(raw_rows().remove_columns("label")).train()

        _, symptom = live(run)
        assert symptom == TokensMissing(None, ("text",))
        _, symptom = text(run)
        assert symptom == TokensMissing(None, None)

    def test_text_in_the_hands_of_a_collator(self):
        def run():
            DataCollatorWithPadding(tokenizer())([{"text": "a", "label": 0}])

        _, symptom = live(run)
        assert symptom == TokensMissing(("text", "label"), ("text",))
        _, symptom = text(run)
        assert symptom == TokensMissing(("text", "label"), None)

    def test_a_string_that_should_become_a_tensor(self):
        features = [{"words": ["a", "b"], "label": 0}, {"words": ["b", "c"], "label": 1}]
        _, symptom = live(lambda: default_data_collator(features))
        assert symptom == TokensMissing(("words", "label"), None)

    @pytest.mark.parametrize(
        "make",
        [
            bert,
            lambda: GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=4, n_embd=16, n_layer=1, n_head=2)),
        ],
        ids=["BERT", "GPT-2"],
    )
    def test_a_model_called_without_them(self, make):
        _, symptom = live(lambda: make()(attention_mask=torch.ones(1, 3)))
        assert symptom == TokensMissing(None, None)


class TestLossMissing:
    def test_the_message_holds_what_came_and_what_went(self):
        def run():
            rows = tokenized_rows().rename_column("label", "target")
            trainer(rows, processing_class=tokenizer()).train()

        for _, symptom in (live(run), text(run)):
            assert isinstance(symptom, LossMissing)
            assert symptom.returned == ("logits",)
            assert sorted(symptom.received) == ["attention_mask", "input_ids", "token_type_ids"]


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

    @pytest.mark.parametrize(
        ("message", "devices"),
        [
            (
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
                "(when checking argument for argument mat1 in method wrapper_CUDA_addmm)",
                ("cuda:0", "cpu"),
            ),
            (
                "Expected all tensors to be on the same device, but got index is on cpu, different from other "
                "tensors on cuda:1 (when checking argument in method wrapper_CUDA__index_select)",
                ("cpu", "cuda:1"),
            ),
        ],
        ids=["two devices", "index"],
    )
    def test_the_words_of_a_machine_with_a_card(self, message, devices):
        # The two wordings in PyTorch's source; the machines that this runs on have no card to say them.
        _, symptom = facts_of_text(f"Traceback (most recent call last):\nRuntimeError: {message}")
        assert symptom == DevicesDiffer(devices)


class TestMetricGotLogits:
    @pytest.mark.parametrize(
        ("run", "shape"),
        [
            (lambda: accuracy_score(np.array([0, 1, 2, 1]), np.random.randn(4, 3)), (4, 3)),
            (lambda: accuracy_score(np.array([0, 1, 1, 1]), np.random.randn(4)), (4,)),
            (lambda: f1_score(np.random.randn(4, 3), np.array([0, 1, 2, 1])), (4, 3)),
            (lambda: accuracy_score(np.zeros((4, 5)), np.random.randn(4, 5, 3)), (4, 5, 3)),
        ],
        ids=["classes", "one score", "swapped", "words"],
    )
    def test_the_frames_hold_the_shape_of_the_scores(self, run, shape):
        crash, symptom = live(run)
        assert symptom == MetricGotLogits(shape)
        assert crash.where.function == "<lambda>"
        _, symptom = text(run)
        assert symptom == MetricGotLogits()


class TestUnknownFailures:
    @pytest.mark.parametrize(
        "run",
        [
            lambda: torch.randn(2, 3) @ torch.randn(2, 3),
            lambda: F.one_hot(torch.arange(4), 3),
            lambda: {}["pixels"],
            lambda: int("three"),
            lambda: torch.cat([torch.zeros(2, 3), torch.zeros(2, 4)]),
            lambda: accuracy_score([0, 1], [0, 1, 1]),
        ],
        ids=["shapes", "one_hot", "KeyError", "ValueError", "cat", "lengths"],
    )
    def test_nothing_is_recognised_in_them(self, run):
        error = failure(run)
        assert len(facts_of_exception(error)) == 1
        assert len(facts_of_text("".join(traceback.format_exception(error)))) == 1

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
