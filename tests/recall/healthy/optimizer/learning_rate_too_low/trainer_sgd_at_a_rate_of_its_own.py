"""Trainer: optim="sgd" with a rate of 0.1."""

import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)


class Sensors(torch.utils.data.Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 20)
        self.y = (self.x[:, :5].sum(1) > 0).long() + (self.x[:, 5] > 1).long()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, x, labels=None):
        logits = self.net(x)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def compute_metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=0.1, optim="sgd",
        eval_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
        logging_steps=40,
    )  # fmt: skip
    Trainer(
        Net(), args, train_dataset=Sensors(960), eval_dataset=Sensors(200), compute_metrics=compute_metrics
    ).train()
