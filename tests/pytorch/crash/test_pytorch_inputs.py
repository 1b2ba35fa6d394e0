"""Real failures of PyTorch and transformers that come of the inputs; the others are in `test_pytorch`."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import (
    DataCollatorWithPadding,
    GPT2Config,
    GPT2LMHeadModel,
    default_data_collator,
)

from diagnostics.collectors.crash.pytorch import column_lengths
from diagnostics.facts.crash.data import RaggedColumns, TokensMissing
from tests.support.crashes import live, text
from tests.support.tiny_bert import bert, raw_rows, tokenized_rows, tokenizer, trainer

pytestmark = pytest.mark.filterwarnings("ignore")


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
        ("run", "lengths", "clash", "shapes"),
        [
            (first_batch(lambda n: (torch.zeros(n), 1)), {"0": (3, 4, 5, 3)}, (3, 4), None),
            (first_batch(lambda n: {"ids": torch.zeros(n), "label": 1}), {"ids": (3, 4, 5, 3)}, (3, 4), None),
            (first_batch(lambda n: {"ids": [1] * n, "label": 1}), {"ids": (3, 4, 5, 3)}, None, None),
            (first_batch(lambda n: np.zeros((n, 2))), {"the examples": (3, 4, 5, 3)}, (3, 4), ((3, 2), (4, 2))),
            (
                first_batch(lambda n: (torch.zeros(3, 8, n), 1)),
                {"0": (3, 4, 5, 3)},
                (3, 4),
                ((3, 8, 3), (3, 8, 4)),
            ),
            (lambda: torch.tensor([[1, 2], [3]]), {}, (2, 1), None),
            (lambda: np.array([[1, 2], [3]], dtype=float), {}, None, None),
            (
                lambda: torch.stack([torch.zeros(3, 8, 8), torch.zeros(3, 8, 9)]),
                {},
                (8, 9),
                ((3, 8, 8), (3, 8, 9)),
            ),
        ],
        ids=["tuples", "dicts", "lists", "arrays", "images", "torch.tensor", "np.array", "torch.stack"],
    )
    def test_the_frames_hold_columns_and_lengths(self, run, lengths, clash, shapes):
        _, symptom = live(run)
        assert symptom == RaggedColumns(lengths, clash, shapes=shapes)
        _, symptom = text(run)
        assert symptom == RaggedColumns({}, clash, shapes=shapes)

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
        assert symptom == RaggedColumns(column="labels", clash=(4, 5))  # of the first error in the text
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
