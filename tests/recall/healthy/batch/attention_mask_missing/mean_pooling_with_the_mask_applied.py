"""DistilBERT as an encoder, mask given, mean over real tokens only; regression of a score."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import DistilBertConfig, DistilBertModel

random.seed(0)
torch.manual_seed(0)
PAD = 1


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        config = DistilBertConfig(
            vocab_size=60,
            dim=32,
            n_layers=1,
            n_heads=2,
            hidden_dim=64,
            max_position_embeddings=64,
            pad_token_id=PAD,
        )
        self.bert = DistilBertModel(config)
        self.score = nn.Linear(32, 1)

    def forward(self, ids, mask):
        hidden = self.bert(ids, attention_mask=mask).last_hidden_state
        pooled = (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return self.score(pooled).squeeze(1)


def essays(count):
    for _ in range(count):
        length = random.randint(4, 30)
        ids = [random.randint(2, 59) for _ in range(length)]
        yield ids, sum(i < 20 for i in ids) / length * 6


def collate(rows):
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([r + [PAD] * (longest - len(r)) for r, _ in rows])
    return ids, (ids != PAD).long(), torch.tensor([s for _, s in rows])


train = DataLoader(list(essays(600)), batch_size=20, shuffle=True, collate_fn=collate)
model = Scorer()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(6):
    total = 0
    for ids, mask, score in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(ids, mask), score)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: mse {total / len(train):.3f}")
