"""A sum of embeddings; the mask of the batch is not used, since the padding's embedding stays zero."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(1)
torch.manual_seed(1)
PAD, TOPICS = 0, 4


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(150, 32, padding_idx=PAD)
        self.hidden = nn.Linear(32, 32)
        self.out = nn.Linear(32, TOPICS)

    def forward(self, tokens):
        return self.out(torch.relu(self.hidden(self.embed(tokens).sum(1))))


def text():
    topic = random.randrange(TOPICS)
    words = [random.randint(60, 149) for _ in range(random.randint(4, 30))]
    for place in random.sample(range(len(words)), 3):
        words[place] = random.randint(1 + 14 * topic, 14 + 14 * topic)
    return words, topic


def collate(rows):
    longest = max(len(words) for words, _ in rows)
    tokens = torch.tensor([words + [PAD] * (longest - len(words)) for words, _ in rows])
    return {
        "input_ids": tokens,
        "attention_mask": tokens.ne(PAD).long(),
        "labels": torch.tensor([t for _, t in rows]),
    }


loader = DataLoader([text() for _ in range(800)], batch_size=32, shuffle=True, collate_fn=collate)
model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    total, right = 0.0, 0
    for batch in loader:
        logits = model(batch["input_ids"])
        loss = nn.functional.cross_entropy(logits, batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, right = total + loss.item(), right + (logits.argmax(1) == batch["labels"]).sum().item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}, accuracy {right / 800:.3f}")
