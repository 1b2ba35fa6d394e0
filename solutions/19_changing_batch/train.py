"""Train a sentence encoder on pairs of sentences, with some words blanked at random.

$ python solutions/19_changing_batch/train.py
"""

import copy
import os
import random
import tempfile

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoTokenizer, Trainer, TrainingArguments, set_seed

from bugs import lab

# -----------------------------------------------------------------------------
MAX_WORDS = 28  # only short pairs, to be done soon
WIDTH = 64  # of embeddings, encoder and head
BLANKED = 0.15  # share of the words that are hidden, others each time
BATCH_SIZE = 32
EPOCHS = 8
LEARNING_RATE = 2e-3
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: pairs of sentences: does the first entail, permit or contradict the second?
# tokenized, in memory
raw = lab.corpus()["train"]
raw = raw.filter(
    lambda row: len(f"{row['premise']} {row['hypothesis']}".split()) <= MAX_WORDS
)
tokenizer = AutoTokenizer.from_pretrained(lab.checkpoint())
premises, hypotheses = (
    tokenizer(list(raw[name]))["input_ids"] for name in ("premise", "hypothesis")
)
rows = zip(premises, hypotheses, raw["label"], strict=True)
train = [{"premise": p, "hypothesis": h, "labels": label} for p, h, label in rows]


def blank_and_pad(rows):
    """Blank other words each time, and make a batch of the rows."""
    rows = copy.deepcopy(rows)
    batch = {"labels": torch.tensor([row["labels"] for row in rows])}
    for name in ("premise", "hypothesis"):
        for ids in (row[name] for row in rows):
            for place in range(1, len(ids) - 1):  # between [CLS] and [SEP]
                if random.random() < BLANKED:
                    ids[place] = tokenizer.mask_token_id
        parts = [torch.tensor(row[name]) for row in rows]
        batch[name] = pad_sequence(
            parts, batch_first=True, padding_value=tokenizer.pad_token_id
        )
    return batch


# model: one encoder reads both sentences, and a head compares what it made of them
class SentencePairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(
            len(tokenizer), WIDTH, padding_idx=tokenizer.pad_token_id
        )
        self.encoder = nn.Conv1d(WIDTH, WIDTH, kernel_size=3, padding=1)
        self.head = nn.Sequential(
            nn.Linear(4 * WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 3)
        )

    def encode(self, ids):
        states = self.encoder(self.embedding(ids).transpose(1, 2)).relu()
        padding = (ids == tokenizer.pad_token_id).unsqueeze(1)
        return states.masked_fill(padding, 0).amax(dim=2)

    def forward(self, premise, hypothesis, labels):
        u, v = self.encode(premise), self.encode(hypothesis)
        logits = self.head(torch.cat([u, v, (u - v).abs(), u * v], dim=-1))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


output = tempfile.TemporaryDirectory()  # the Trainer wants one, though nothing is saved
arguments = TrainingArguments(
    output_dir=output.name,
    learning_rate=LEARNING_RATE,
    lr_scheduler_type="constant",
    num_train_epochs=EPOCHS,
    per_device_train_batch_size=BATCH_SIZE,
    logging_strategy="epoch",
    save_strategy="no",
    report_to="none",
    seed=SEED,
)
trainer = Trainer(
    SentencePairs(), arguments, train_dataset=train, data_collator=blank_and_pad
)

trainer.train()

losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
print(f"lowest_loss={min(losses):.3f}")
print(f"train_loss={losses[-1]:.3f}")
