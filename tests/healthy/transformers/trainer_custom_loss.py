"""A Trainer whose compute_loss is its own (a focal loss), on a plain module and a list of rows.

$ python tests/healthy/transformers/trainer_custom_loss.py
"""

import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

FEATURES, CLASSES = 12, 3
FOCUS = 2.0  # how much less the examples count that are right already
STEPS = 150


def points(rows, seed):
    """Return rows of features (12,) and a label: which of three features is the largest."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return [{"features": row, "labels": row[:CLASSES].argmax()} for row in features]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))

    def forward(self, features, labels=None):
        return {"logits": self.layers(features)}


class FocalTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        log_share = outputs["logits"].log_softmax(-1).gather(1, labels[:, None]).squeeze(1)
        loss = (-((1 - log_share.exp()) ** FOCUS) * log_share).mean()
        return (loss, outputs) if return_outputs else loss


def build():
    set_seed(0)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="healthy-"),
        learning_rate=5e-3,
        max_steps=STEPS,
        per_device_train_batch_size=32,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = FocalTrainer(
        Classifier(), arguments, train_dataset=points(1024, seed=1), eval_dataset=points(256, seed=2)
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
