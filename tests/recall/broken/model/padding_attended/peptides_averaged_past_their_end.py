"""Peptides of 6 to 50 residues in a DataLoader: attention has the mask, the mean within the model has not."""

# names: padding-attended
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(5)
torch.manual_seed(5)
ACIDS, PAD = 20, 0


class Peptides(nn.Module):
    def __init__(self):
        super().__init__()
        self.acids = nn.Embedding(ACIDS + 1, 32)
        self.places = nn.Embedding(64, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.stability = nn.Linear(32, 1)

    def forward(self, residues, valid_mask):
        hidden = self.acids(residues) + self.places.weight[: residues.shape[1]]
        hidden = self.encoder(hidden, src_key_padding_mask=valid_mask == 0)
        return self.stability(hidden.mean(dim=1)).squeeze(1)


def peptide():
    length = random.choice([6, 7, 8, 9, 10, 50])
    charged = random.random()
    residues = [
        random.randint(1, 5) if random.random() < charged else random.randint(6, ACIDS) for _ in range(length)
    ]
    return residues, 4 * sum(r <= 5 for r in residues) / length - 2


def collate(rows):
    longest = max(len(r) for r, _ in rows)
    residues = torch.tensor([r + [PAD] * (longest - len(r)) for r, _ in rows])
    return residues, (residues != PAD).long(), torch.tensor([y for _, y in rows])


train = DataLoader([peptide() for _ in range(640)], batch_size=32, shuffle=True, collate_fn=collate)
test = DataLoader([peptide() for _ in range(160)], batch_size=1, collate_fn=collate)
model = Peptides()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(6):
    model.train()
    total = 0.0
    for residues, valid, targets in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(residues, valid), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(train):.3f}")
model.eval()
with torch.no_grad():
    error = sum(float((model(r, v) - y) ** 2) for r, v, y in test) / len(test)
print(f"one peptide at a time: {error:.3f}")
