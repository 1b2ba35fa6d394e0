"""DistilBERT from scratch under Trainer with learning_rate=2e-8; the exponent was meant to be -3."""

# names: learning-rate-too-low
import random
import tempfile

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)


def rows(count):
    for _ in range(count):
        label = random.randrange(3)
        ids = [random.randrange(10, 50) for _ in range(12)]
        ids[random.randrange(12)] = 2 + label
        yield {"input_ids": ids, "attention_mask": [1] * 12, "labels": label}


config = DistilBertConfig(
    vocab_size=50, dim=32, n_layers=1, n_heads=2, hidden_dim=64, max_position_embeddings=16, num_labels=3
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, learning_rate=2e-8, num_train_epochs=5, per_device_train_batch_size=16, logging_steps=25,
        eval_strategy="epoch", save_strategy="no", use_cpu=True, disable_tqdm=True, report_to=[],
    )  # fmt: skip
    trainer = Trainer(
        model=DistilBertForSequenceClassification(config), args=args,
        train_dataset=list(rows(800)), eval_dataset=list(rows(100)),
        compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
    )  # fmt: skip
    trainer.train()
