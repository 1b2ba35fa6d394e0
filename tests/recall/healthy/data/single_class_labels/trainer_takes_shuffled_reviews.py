"""Trainer: a part of a data set that is sorted by label, shuffled first."""

import tempfile

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
rng = np.random.default_rng(0)


def imdb(n):
    """As the hub has it: the negative reviews, then the positive ones."""
    labels = np.repeat([0, 1], n // 2)
    ids = rng.integers(10, 60, (n, 24))
    for row, label in zip(ids, labels):
        row[rng.integers(0, 24, 4)] = 60 + 10 * label + rng.integers(0, 10, 4)
    return Dataset.from_dict(
        {"input_ids": ids.tolist(), "attention_mask": np.ones_like(ids).tolist(), "label": labels.tolist()}
    )


raw = DatasetDict({"train": imdb(2000), "test": imdb(400)})
small_train = raw["train"].shuffle(seed=42).select(range(500))
small_eval = raw["test"].shuffle(seed=42).select(range(100))

config = BertConfig(
    vocab_size=80, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=32, num_labels=2,
)  # fmt: skip
model = BertForSequenceClassification(config)


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


with tempfile.TemporaryDirectory() as out:
    training_args = TrainingArguments(
        output_dir=out, learning_rate=3e-4, per_device_train_batch_size=16, num_train_epochs=3,
        eval_strategy="epoch", save_strategy="no", logging_steps=10, report_to="none", use_cpu=True,
        disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=small_train,
        eval_dataset=small_eval,
        compute_metrics=compute_metrics,
    )
    trainer.train()
