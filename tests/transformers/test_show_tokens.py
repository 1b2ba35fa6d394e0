"""`show_tokens` reads a Trainer or a loader through its own collator, and changes nothing."""

import random

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

import diagnostics
from diagnostics.errors import InvalidInput

ROWS = ([1, 3, 4, 2], [1, 3, 2], [1, 4, 4, 4, 2])
SIZES = {
    "vocab_size": 6,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "intermediate_size": 8,
}


@pytest.fixture(scope="module")
def tokenizer():
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "yes": 3, "no": 4, "<unk>": 5}
    raw = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=raw, **special)


class Noisy:
    """A collator that draws random numbers, counts its calls and edits its rows."""

    def __init__(self, tokenizer):
        self.inner = DataCollatorForLanguageModeling(tokenizer, mlm=False)
        self.tokenizer = tokenizer
        self.calls = 0

    def __call__(self, rows):
        self.calls += 1
        random.random(), np.random.rand(), torch.rand(1)
        batch = self.inner([{"input_ids": row["input_ids"]} for row in rows])
        for row in rows:
            row["input_ids"].append(0)
        return batch


def trainer(tmp_path, model, rows, collator):
    args = TrainingArguments(
        output_dir=str(tmp_path), report_to="none", use_cpu=True, per_device_train_batch_size=2
    )
    return Trainer(model=model, args=args, train_dataset=rows, data_collator=collator)


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def test_a_trainer_of_a_language_model_is_left_as_it_was(tmp_path, tokenizer):
    model = LlamaForCausalLM(LlamaConfig(**SIZES, pad_token_id=0))
    rows = [{"input_ids": list(row)} for row in ROWS]
    ours = trainer(tmp_path, model, rows, Noisy(tokenizer))
    before, weights = states(), [weight.clone() for weight in model.parameters()]
    shown = diagnostics.show_tokens(ours)
    assert "row 2: 2 trained, 1 ignored, 1 padding; <s> start, </s> end" in str(shown)
    assert "  0 │<s>│yes│no│</s>│" in str(shown)
    assert (shown.trained, shown.ends, shown.starts, shown.facts.causal) == (5, (2, 2), (1, 1), True)
    assert states() == before
    assert ours.data_collator.calls == 0
    assert [row["input_ids"] for row in rows] == [list(row) for row in ROWS]
    assert all(torch.equal(new, old) for new, old in zip(model.parameters(), weights, strict=True))


def test_a_trainer_of_a_classifier(tmp_path, tokenizer):
    model = BertForSequenceClassification(BertConfig(**SIZES, num_labels=2))
    rows = [{"input_ids": list(row), "label": label} for row, label in zip(ROWS, (1, 0, 1), strict=True)]
    shown = diagnostics.show_tokens(trainer(tmp_path, model, rows, DataCollatorWithPadding(tokenizer)), examples=3)
    assert "row 3: 5 tokens; label 1" in str(shown)
    assert shown.padding == 3


def test_a_loader_shuffles_nothing_and_keeps_its_generator(tokenizer):
    generator = torch.Generator().manual_seed(1)
    rows = [{"input_ids": list(row)} for row in ROWS]
    loader = DataLoader(rows, 3, shuffle=True, collate_fn=Noisy(tokenizer), generator=generator)
    before = generator.get_state(), states()
    shown = diagnostics.show_tokens(loader)
    assert [len([t for t in row.tokens if t.state != "padding"]) for row in shown.facts.rows] == [4, 3, 5]
    assert torch.equal(generator.get_state(), before[0])
    assert states() == before[1]


def test_a_list_of_batches(tokenizer):
    batch = tokenizer(["yes no", "yes"], padding=True, return_tensors="pt")
    assert "│yes│no│" in str(diagnostics.show_tokens([batch], tokenizer=tokenizer))


def test_an_iterator_is_not_read(tokenizer):
    batches = iter([{"input_ids": [[1, 2]]}])
    with pytest.raises(InvalidInput, match="would take that away from training"):
        diagnostics.show_tokens(batches)
    assert next(batches)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (torch.nn.Linear(1, 1), "the model Linear"),
        ([(torch.ones(2), torch.ones(2))], "not mappings"),
        (3, "cannot be iterated"),
        ((torch.ones(2), torch.ones(2)), "a single batch"),
    ],
)
def test_says_what_it_takes(source, words):
    with pytest.raises(InvalidInput, match=words):
        diagnostics.show_tokens(source)


def test_what_the_collator_raises_is_named(tokenizer):
    loader = DataLoader([{"text": "yes"}], 1, collate_fn=Noisy(tokenizer))
    with pytest.raises(InvalidInput, match="KeyError: 'input_ids'"):
        diagnostics.show_tokens(loader)
