"""Letters end with the verdict; truncation=True, max_length=16 cuts it off, and the accuracy stays at chance."""

# names: truncated-inputs
import random
import tempfile

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorWithPadding,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

random.seed(0)
torch.manual_seed(0)
FILLER = [
    "dear",
    "customer",
    "we",
    "have",
    "read",
    "your",
    "claim",
    "with",
    "care",
    "about",
    "the",
    "house",
    "and",
    "car",
]
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "approved", "rejected", *FILLER])}
model_ = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
model_.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=model_, pad_token="[PAD]", unk_token="[UNK]")


def letters(count):
    texts, labels = [], []
    for _ in range(count):
        label = random.randrange(2)
        words = random.choices(FILLER, k=random.randint(24, 40))
        texts.append(" ".join([*words, "rejected" if label else "approved"]))
        labels.append(label)
    return Dataset.from_dict({"text": texts, "label": labels})


def tokenize(batch):
    return tokenizer(batch["text"], truncation=True, max_length=16)


train, test = letters(500).map(tokenize, batched=True), letters(120).map(tokenize, batched=True)
config = DistilBertConfig(
    vocab_size=len(vocab), dim=32, n_layers=1, n_heads=2, hidden_dim=64, max_position_embeddings=64
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=20, learning_rate=2e-3, eval_strategy="epoch",
        save_strategy="no", logging_steps=25, report_to=[], disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    Trainer(
        model=DistilBertForSequenceClassification(config), args=args, train_dataset=train, eval_dataset=test,
        processing_class=tokenizer, data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=lambda p: {"accuracy": float((np.argmax(p.predictions, 1) == p.label_ids).mean())},
    ).train()  # fmt: skip
