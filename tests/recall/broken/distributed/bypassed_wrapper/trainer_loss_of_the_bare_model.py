"""compute_loss calls self.model, which is the model without its wrapper."""
# names: bypassed-wrapper, diverged-replicas
# ranks: 2

import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Rows(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.features = torch.randn(640, 16, generator=generator)
        self.labels = self.features[:, :4].argmax(1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        return {"features": self.features[row], "labels": self.labels[row]}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, features, labels=None):
        logits = self.layers(features)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = self.model(inputs["features"], labels)
        weights = torch.tensor([1.0, 1.0, 1.0, 2.0])
        loss = nn.functional.cross_entropy(outputs["logits"], labels, weight=weights)
        return (loss, outputs) if return_outputs else loss


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        num_train_epochs=4,
        per_device_train_batch_size=16,
        learning_rate=3e-3,
        report_to=[],
        save_strategy="no",
        logging_steps=10,
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
    )
    WeightedTrainer(Classifier(), arguments, train_dataset=Rows()).train()
