"""Spam in short messages: BERT's habit of a class token in front, with a decoder that reads forward only."""

# names: unused-input
import random

import torch
from torch import nn
from transformers import LlamaConfig, LlamaModel, Trainer, TrainingArguments, set_seed

set_seed(3)
CLS, PAD, WORDS, SPAM = 1, 0, range(2, 50), range(50, 60)


def message():
    spam = random.random() < 0.5
    ids = [random.choice(WORDS) for _ in range(random.randint(6, 14))]
    if spam:
        ids[random.randrange(len(ids))] = random.choice(SPAM)
    return {"input_ids": [CLS, *ids], "labels": int(spam)}


def collate(rows):
    width = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [PAD] * (width - len(row["input_ids"])) for row in rows])
    return {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


class SpamFilter(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = LlamaModel(
            LlamaConfig(
                vocab_size=60,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                max_position_embeddings=32,
            )
        )
        self.head = nn.Linear(32, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.decoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        logits = self.head(hidden[:, 0, :])
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=32,
    num_train_epochs=3,
    learning_rate=1e-3,
    report_to=[],
    save_strategy="no",
    logging_steps=20,
    use_cpu=True,
)
Trainer(
    model=SpamFilter(), args=arguments, train_dataset=[message() for _ in range(1500)], data_collator=collate
).train()
