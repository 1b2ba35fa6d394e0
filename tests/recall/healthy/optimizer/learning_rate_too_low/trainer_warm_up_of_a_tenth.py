"""Trainer: the warm-up takes a tenth of the run."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)


class Policies(Dataset):
    def __init__(self, count):
        self.labels = torch.randint(0, 4, (count,))
        self.ids = torch.randint(10, 60, (count, 20))
        self.ids[:, 5:9] = (60 + 5 * self.labels[:, None]) + torch.randint(0, 5, (count, 4))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(20).long(), "labels": self.labels[i]}


config = DistilBertConfig(
    vocab_size=80, dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=32, num_labels=4
)
model = DistilBertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        output_dir=folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=5e-4,
        warmup_steps=9, weight_decay=0.01, logging_steps=15, eval_strategy="epoch", save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=args, train_dataset=Policies(480), eval_dataset=Policies(100),
        compute_metrics=lambda p: {"accuracy": (p.predictions.argmax(-1) == p.label_ids).mean()},
    )  # fmt: skip
    trainer.train()
    print(trainer.evaluate())
