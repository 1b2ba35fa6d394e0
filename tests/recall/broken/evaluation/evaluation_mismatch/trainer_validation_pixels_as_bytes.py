"""Trainer: the validation split keeps its pixels from 0 to 255."""

# names: evaluation-mismatch
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)


class Digits(torch.utils.data.Dataset):
    def __init__(self, count, scale):
        self.labels = torch.arange(count) % 4
        pixels = torch.randint(0, 120, (count, 1, 8, 8))
        for place, label in enumerate(self.labels):
            pixels[place, 0, 2 * label : 2 * label + 2] += 130
        self.pixels = pixels.float() * scale

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return {"pixel_values": self.pixels[place], "labels": self.labels[place]}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 4))

    def forward(self, pixel_values, labels=None):
        logits = self.body(pixel_values)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=32, learning_rate=2e-3, eval_strategy="epoch",
        report_to=[], disable_tqdm=True, save_strategy="no", use_cpu=True,
    )  # fmt: skip
    trainer = Trainer(Classifier(), arguments, train_dataset=Digits(640, 1 / 255), eval_dataset=Digits(160, 1.0))
    trainer.train()
