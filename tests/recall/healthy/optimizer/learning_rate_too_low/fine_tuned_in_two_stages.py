"""Trainer twice: the head alone at first, then all layers at a smaller rate."""

import random
import tempfile

import numpy as np
import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)


def rows(count):
    for _ in range(count):
        label = random.randrange(3)
        ids = [random.randrange(10, 50) for _ in range(12)]
        for at in random.sample(range(12), 3):
            ids[at] = 2 + label
        yield {"input_ids": ids, "attention_mask": [1] * 12, "labels": label}


train, test = list(rows(600)), list(rows(120))
model = DistilBertForSequenceClassification(
    DistilBertConfig(
        vocab_size=50, dim=32, n_layers=1, n_heads=2, hidden_dim=64, max_position_embeddings=16, num_labels=3
    )
)


def accuracy(p):
    return {"accuracy": float((np.argmax(p.predictions, -1) == p.label_ids).mean())}


def stage(rate, epochs):
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder, learning_rate=rate, num_train_epochs=epochs, per_device_train_batch_size=20, logging_steps=15,
            save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=test, compute_metrics=accuracy)
        trainer.train()
        return trainer.evaluate()["eval_accuracy"]


for parameter in model.distilbert.parameters():
    parameter.requires_grad = False
print("head alone", stage(5e-3, 3))
for parameter in model.parameters():
    parameter.requires_grad = True
print("all layers", stage(2e-3, 4))
