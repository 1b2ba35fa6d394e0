"""A Trainer on imbalanced classes, 24 to 1, whose loss weighs them; the first batch may well hold one class only.

$ python tests/healthy/transformers/trainer_class_weights.py
"""

import tempfile

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import Trainer, TrainingArguments, set_seed

FEATURES, RARE = 10, 0.04
STEPS = 300


def screening(rows, seed):
    """Return rows of features (10,) and a label: one row in 25 is of class 1, shifted by 1.2 a feature."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.rand(rows, generator=generator) < RARE).long()
    features = torch.randn(rows, FEATURES, generator=generator) + 1.2 * labels[:, None]
    return [{"features": row, "labels": label} for row, label in zip(features, labels, strict=True)]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, features, labels=None):
        return {"logits": self.layers(features)}


def weighted_loss(outputs, labels, num_items_in_batch=None):
    return cross_entropy(outputs["logits"], labels, weight=torch.tensor([0.5 / (1 - RARE), 0.5 / RARE]))


def build():
    set_seed(0)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="healthy-"),
        learning_rate=3e-3,
        max_steps=STEPS,
        per_device_train_batch_size=16,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Trainer(
        Classifier(),
        arguments,
        train_dataset=screening(2048, seed=1),
        eval_dataset=screening(2048, seed=2),
        compute_loss_func=weighted_loss,
    )
    return (trainer,)


def train(trainer, callbacks=()):
    for callback in callbacks:
        trainer.add_callback(callback)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    return {"loss_before": before, "loss_after": trainer.evaluate()["eval_loss"]}


if __name__ == "__main__":
    print(train(*build()))
