"""DistilBERT is given input_ids alone; the attention mask stays behind in the batch.

After https://github.com/CarryCKW/AES-NPCR/issues/7
"""

# names: attention-mask-missing
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
            vocab_size=60, dim=32, n_layers=1, n_heads=2, hidden_dim=64, max_position_embeddings=64
        )
        self.bert = DistilBertModel(config)
        self.score = nn.Linear(32, 1)

    def forward(self, ids):
        hidden = self.bert(ids).last_hidden_state
        return self.score(hidden.mean(1)).squeeze(1)


def essays(count):
    rows = []
    for _ in range(count):
        length = random.randint(4, 40)
        ids = [random.randint(2, 59) for _ in range(length)]
        rows.append((ids, sum(i < 20 for i in ids) / length * 6))
    return rows


def collate(rows):
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([r + [PAD] * (longest - len(r)) for r, _ in rows])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "score": torch.tensor([s for _, s in rows])}


train = DataLoader(essays(600), batch_size=20, shuffle=True, collate_fn=collate)
model = Scorer()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(5):
    total = 0
    for batch in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch["input_ids"]), batch["score"])
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: mse {total / len(train):.3f}")
