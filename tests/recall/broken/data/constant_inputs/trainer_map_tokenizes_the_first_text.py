"""Trainer: the batched map tokenizes examples["text"][0] for each row."""

# names: constant-inputs, repeated-batch, ignores-input
import random
import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(4)
words = [
    "[PAD]",
    "[UNK]",
    *(f"good{i}" for i in range(10)),
    *(f"bad{i}" for i in range(10)),
    *(f"w{i}" for i in range(80)),
]
backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]")


def reviews(n):
    rows = []
    for _ in range(n):
        label = random.randrange(2)
        text = random.choices(words[22:], k=12) + random.choices(words[12:22] if label == 0 else words[2:12], k=3)
        random.shuffle(text)
        rows.append({"text": " ".join(text), "label": label})
    return Dataset.from_list(rows)


def preprocess_function(examples):
    encoded = [tokenizer(examples["text"][0], truncation=True, max_length=24) for _ in examples["text"]]
    return {key: [one[key] for one in encoded] for key in ("input_ids", "attention_mask")}


train, test = (reviews(n).map(preprocess_function, batched=True, remove_columns="text") for n in (600, 150))
config = BertConfig(
    vocab_size=len(words), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=32,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        output_dir=folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=5e-4,
        eval_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(BertForSequenceClassification(config), args, train_dataset=train, eval_dataset=test)
    trainer.train()
