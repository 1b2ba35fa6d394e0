"""Trainer: a small run selects the first 160 rows of the training split for the evaluation, too."""

# names: leaked-evaluation-rows
import tempfile

import numpy as np
from datasets import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(1)
rng = np.random.default_rng(1)


def reviews(n):
    labels = rng.integers(0, 2, n)
    ids = rng.integers(10, 200, (n, 20))
    for row, label in zip(ids, labels):
        row[rng.choice(20, 3, replace=False)] = 200 + 10 * label + rng.integers(0, 10, 3)
    return Dataset.from_dict(
        {"input_ids": ids.tolist(), "attention_mask": np.ones_like(ids).tolist(), "label": labels.tolist()}
    )


dataset = {"train": reviews(700), "test": reviews(300)}
tokenized_train = dataset["train"].shuffle(seed=42).select(range(640))
tokenized_eval = dataset["train"].shuffle(seed=42).select(range(160))

config = DistilBertConfig(vocab_size=220, dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=32)
model = DistilBertForSequenceClassification(config)


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


with tempfile.TemporaryDirectory() as out:
    args = TrainingArguments(
        out, learning_rate=5e-4, per_device_train_batch_size=16, num_train_epochs=4, eval_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=args, train_dataset=tokenized_train, eval_dataset=tokenized_eval,
        compute_metrics=compute_metrics,
    )  # fmt: skip
    trainer.train()
