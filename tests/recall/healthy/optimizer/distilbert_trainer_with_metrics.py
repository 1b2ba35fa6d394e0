"""DistilBERT from scratch under Trainer, a WordPiece vocabulary made here, evaluated after each epoch."""

import random
import tempfile

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    DataCollatorWithPadding,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

random.seed(1)
torch.manual_seed(1)
GOOD, BAD = ["lovely", "fine", "great", "superb"], ["awful", "poor", "dull", "broken"]
PLAIN = ["the", "film", "was", "and", "plot", "its", "actor", "scene", "music", "end"]
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *GOOD, *BAD, *PLAIN])}
backend = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
backend.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
)


def reviews(count):
    rows = []
    for _ in range(count):
        label = random.randrange(2)
        words = random.choices(PLAIN, k=random.randint(4, 12))
        words.insert(random.randrange(len(words)), random.choice(GOOD if label else BAD))
        rows.append({**tokenizer(" ".join(words), truncation=True, max_length=32), "label": label})
    return rows


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


config = DistilBertConfig(
    vocab_size=len(vocab), dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64, num_labels=2
)
model = DistilBertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3, eval_strategy="epoch",
        save_strategy="no", logging_steps=20, report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=args, train_dataset=reviews(600), eval_dataset=reviews(150),
        data_collator=DataCollatorWithPadding(tokenizer), compute_metrics=compute_metrics,
    )  # fmt: skip
    trainer.train()
    print(trainer.evaluate()["eval_accuracy"])
