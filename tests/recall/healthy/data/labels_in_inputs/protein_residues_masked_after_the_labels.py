"""A small protein language model: the labels are taken before the residues are masked."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
RESIDUES, LENGTH = 20, 24
MASK, VOCAB = RESIDUES, RESIDUES + 1
motifs = torch.randint(0, RESIDUES, (12, 6))


def family(n):
    return torch.stack([motifs[torch.randint(12, (LENGTH // 6,))].flatten() for _ in range(n)])


def mask_residues(sequences, rate=0.15):
    chosen = torch.rand(sequences.shape) < rate
    roll = torch.rand(sequences.shape)
    labels = sequences.masked_fill(~chosen, -100)
    sequences[chosen & (roll < 0.8)] = MASK
    other = chosen & (roll > 0.9)
    sequences[other] = torch.randint(0, RESIDUES, (int(other.sum()),))
    return sequences, labels


class ProteinEncoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed, self.position = nn.Embedding(VOCAB, width), nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, sequences):
        return self.head(self.encoder(self.embed(sequences) + self.position.weight))


model = ProteinEncoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(family(1200)), batch_size=64, shuffle=True)
for epoch in range(6):
    total = 0.0
    for (sequences,) in loader:
        inputs, labels = mask_residues(sequences.clone())
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), labels.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")

model.eval()
truth = family(200)
hidden = truth.clone()
hidden[:, 8] = MASK
with torch.no_grad():
    right = (model(hidden)[:, 8].argmax(-1) == truth[:, 8]).float().mean()
print(f"masked residues restored: {right:.3f}")
