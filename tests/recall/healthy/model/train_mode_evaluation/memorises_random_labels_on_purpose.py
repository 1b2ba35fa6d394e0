"""Rethinking generalization: a net fits labels drawn by a die, and predicts no others."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x, y = torch.randn(900, 40), torch.randint(0, 4, (900,))
train = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=40, shuffle=True)
held_out = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=100)
model = nn.Sequential(nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(25):
    model.train()
    for xb, yb in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    losses = [F.cross_entropy(model(xb), yb).item() for xb, yb in held_out]
    right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in held_out)
print(f"train {loss.item():.3f}, held out {sum(losses) / len(losses):.3f}, {right / 500:.0%} right")
