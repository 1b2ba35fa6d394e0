"""A DistilBERT under a head of its own rates how urgent a ticket is; the mask goes with the tokens."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import DistilBertConfig, DistilBertModel

random.seed(0)
torch.manual_seed(0)
PAD, CLS, LEVELS = 0, 1, 3


class Urgency(nn.Module):
    def __init__(self):
        super().__init__()
        config = DistilBertConfig(
            vocab_size=120, dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=104, dropout=0.0
        )
        self.encoder = DistilBertModel(config)
        self.head = nn.Linear(48, LEVELS)

    def forward(self, input_ids, attention_mask):
        hidden = self.encoder(input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1)
        return self.head((hidden * mask).sum(1) / mask.sum(1))


def ticket():
    words = [random.random() for _ in range(random.choice([3, 4, 6, 8, 12, 100]))]
    angry = random.random()
    ids = [random.randint(10, 29) if word < angry else random.randint(30, 119) for word in words]
    share = sum(i < 30 for i in ids) / len(ids)
    return [CLS, *ids], 0 if share < 0.34 else 1 if share < 0.67 else 2


def collate(rows):
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([ids + [PAD] * (longest - len(ids)) for ids, _ in rows])
    return {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "labels": torch.tensor([level for _, level in rows]),
    }


train = DataLoader([ticket() for _ in range(400)], batch_size=32, shuffle=True, collate_fn=collate)
test = DataLoader([ticket() for _ in range(200)], batch_size=50, collate_fn=collate)
model = Urgency()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
for epoch in range(4):
    model.train()
    total = 0.0
    for batch in train:
        optimizer.zero_grad()
        logits = model(batch["input_ids"], batch["attention_mask"])
        loss = nn.functional.cross_entropy(logits, batch["labels"])
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        right = sum(
            (model(b["input_ids"], b["attention_mask"]).argmax(1) == b["labels"]).sum().item() for b in test
        )
    print(f"epoch {epoch}: loss {total / len(train):.3f}, accuracy {right / 200:.3f}")
