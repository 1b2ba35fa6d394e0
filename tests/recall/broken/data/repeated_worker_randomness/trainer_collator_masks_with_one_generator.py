"""Trainer: a collator masks words with a `random.Random` of its own, in two workers."""

# names: repeated-worker-randomness
import random
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)


class WordDropout:
    def __init__(self, share):
        self.share = share
        self.rng = random.Random(13)

    def drop(self, ids):
        return [0 if self.rng.random() < self.share else i for i in ids]

    def __call__(self, rows):
        ids = [self.drop(row["ids"]) for row in rows]
        return {"ids": torch.tensor(ids), "labels": torch.tensor([row["labels"] for row in rows])}


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(50, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, ids, labels=None):
        logits = self.out(self.words(ids))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def sentences(count):
    for _ in range(count):
        label = random.randrange(2)
        yield {"ids": [random.randrange(1, 30) + 20 * label for _ in range(12)], "labels": label}


if __name__ == "__main__":
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=2, per_device_train_batch_size=16, dataloader_num_workers=2, report_to=[],
            disable_tqdm=True, save_strategy="no", use_cpu=True, learning_rate=5e-2, logging_steps=10,
            remove_unused_columns=False,
        )  # fmt: skip
        Trainer(Bag(), arguments, data_collator=WordDropout(0.2), train_dataset=list(sentences(480))).train()
