"""Trainer: both splits number their labels by the same sorted list."""

import random
import tempfile

import torch
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(3)
CATEGORIES = ["sport", "politics", "science", "travel"]
VOCAB = {"[PAD]": 0}
for word in [f"{c}{i}" for c in CATEGORIES for i in range(8)] + [f"w{i}" for i in range(60)]:
    VOCAB[word] = len(VOCAB)


def corpus(n):
    texts, labels = [], []
    for _ in range(n):
        label = random.choice(CATEGORIES)
        words = random.choices([f"w{i}" for i in range(60)], k=10) + [
            f"{label}{random.randrange(8)}" for _ in range(3)
        ]
        random.shuffle(words)
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


class NewsDataset(torch.utils.data.Dataset):
    def __init__(self, texts, labels):
        self.encodings = [[VOCAB[w] for w in text.split()] for text in texts]
        unique = sorted(set(labels))
        self.labels = [unique.index(label) for label in labels]

    def __getitem__(self, idx):
        ids = torch.tensor(self.encodings[idx])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor(self.labels[idx])}

    def __len__(self):
        return len(self.labels)


train_dataset = NewsDataset(*corpus(640))
val_dataset = NewsDataset(*corpus(160))
config = DistilBertConfig(
    vocab_size=len(VOCAB), dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=32, num_labels=4
)
model = DistilBertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    training_args = TrainingArguments(
        output_dir=folder, num_train_epochs=5, per_device_train_batch_size=16, learning_rate=5e-4,
        eval_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=training_args, train_dataset=train_dataset, eval_dataset=val_dataset,
        compute_metrics=lambda p: {"acc": float((p.predictions.argmax(-1) == p.label_ids).mean())},
    )  # fmt: skip
    trainer.train()
