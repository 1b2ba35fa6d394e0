"""Train a sentence encoder to tell entailment from neutral and contradiction.

$ python bugs/13_detached_encoder/train.py
"""

import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoTokenizer

from bugs import lab

# -----------------------------------------------------------------------------
MAX_WORDS = 28  # only short pairs, to be done soon
MAX_LENGTH = 32  # tokens of a sentence; of the few longer ones the end is cut off
WIDTH = 64  # of embeddings, encoder and head
BATCH_SIZE = 32
EPOCHS = 4
LEARNING_RATE = 2e-3
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

# data: pairs of sentences: does the first entail, permit or contradict the second?
raw = lab.corpus().filter(
    lambda row: len(f"{row['premise']} {row['hypothesis']}".split()) <= MAX_WORDS
)
tokenizer = AutoTokenizer.from_pretrained(lab.checkpoint())


def tokenized(split):
    columns = [
        tokenizer(
            list(split[name]),
            padding=True,
            truncation=True,
            max_length=MAX_LENGTH,
            return_tensors="pt",
        )
        for name in ("premise", "hypothesis")
    ]
    return TensorDataset(
        *[column["input_ids"] for column in columns], torch.tensor(split["label"])
    )


train = DataLoader(tokenized(raw["train"]), batch_size=BATCH_SIZE, shuffle=True)
validation = DataLoader(tokenized(raw["validation"]), batch_size=8 * BATCH_SIZE)


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
        """The vector of each sentence, for the head and for the search index."""
        states = self.encoder(self.embedding(ids).transpose(1, 2)).relu()
        padding = (ids == tokenizer.pad_token_id).unsqueeze(1)
        return states.masked_fill(padding, 0).amax(dim=2).detach()

    def forward(self, premises, hypotheses):
        u, v = self.encode(premises), self.encode(hypotheses)
        return self.head(torch.cat([u, v, (u - v).abs(), u * v], dim=-1))


model = SentencePairs()
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for premises, hypotheses, labels in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(premises, hypotheses), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

model.eval()
with torch.no_grad():
    correct = [
        (model(p, h).argmax(dim=-1) == labels).float() for p, h, labels in validation
    ]
print(f"train_loss={total / len(train):.3f}")
print(f"eval_accuracy={torch.cat(correct).mean():.3f}")
