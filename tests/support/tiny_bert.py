"""The smallest BERT that a Trainer trains, and rows for it."""

import tempfile

from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer, Trainer, TrainingArguments

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]


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
    return Dataset.from_dict({"text": ["a b", "c", "a", "b c"], "label": [0, 1, 0, 1]})


def tokenized_rows():
    tokens = tokenizer()
    return raw_rows().map(lambda row: tokens(row["text"]))
