"""A Trainer on imbalanced classes, 24 to 1, that draws the rare rows more often.

$ python tests/healthy/transformers/trainer_balanced_sampler.py
"""

import tempfile

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import WeightedRandomSampler
from transformers import Trainer, TrainingArguments, set_seed

FEATURES, RARE = 10, 0.04
STEPS = 300


def screening(rows, seed):
    """Return rows of features (10,) and a label: one row in 25 is of class 1, shifted by 1.2 a feature."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.rand(rows, generator=generator) < RARE).long()
    features = torch.randn(rows, FEATURES, generator=generator) + 1.2 * labels[:, None]
    return [{"features": row, "labels": label} for row, label in zip(features, labels, strict=True)]


def balanced(rows):
    """Return as many rows of class 0 as there are of class 1."""
    rare = [row for row in rows if row["labels"]]
    return [row for row in rows if not row["labels"]][: len(rare)] + rare


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, features, labels=None):
        logits = self.layers(features)
        return {"loss": None if labels is None else cross_entropy(logits, labels), "logits": logits}


class BalancedTrainer(Trainer):
    def _get_train_sampler(self, train_dataset=None):
        labels = torch.stack([row["labels"] for row in self.train_dataset])
        return WeightedRandomSampler(1 / labels.bincount()[labels], len(labels))


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
    trainer = BalancedTrainer(
        Classifier(),
        arguments,
        train_dataset=screening(2048, seed=1),
        eval_dataset=balanced(screening(8192, seed=2)),
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
