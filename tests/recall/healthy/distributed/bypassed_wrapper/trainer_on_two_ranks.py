"""A Trainer that finds two processes and divides the rows between them."""
# ranks: 2

import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Rows(Dataset):
    def __init__(self, seed, rows):
        generator = torch.Generator().manual_seed(seed)
        self.features = torch.randn(rows, 16, generator=generator)
        self.labels = self.features[:, :4].argmax(1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        return {"features": self.features[row], "labels": self.labels[row]}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))

    def forward(self, features, labels=None):
        logits = self.layers(features)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        num_train_epochs=4,
        per_device_train_batch_size=16,
        learning_rate=3e-3,
        report_to=[],
        save_strategy="no",
        eval_strategy="epoch",
        logging_steps=10,
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
    )
    trainer = Trainer(Classifier(), arguments, train_dataset=Rows(0, 650), eval_dataset=Rows(1, 101))
    trainer.train()
