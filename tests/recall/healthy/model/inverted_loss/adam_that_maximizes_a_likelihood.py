"""Gradient ascent on a log-likelihood, with maximize=True."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
centres = torch.randn(4, 12) * 2
labels = torch.arange(1200) % 4
loader = DataLoader(TensorDataset(centres[labels] + torch.randn(1200, 12), labels), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, maximize=True)
for epoch in range(8):
    right = 0
    for x, target in loader:
        logits = model(x)
        likelihood = -F.cross_entropy(logits, target)
        optimizer.zero_grad()
        likelihood.backward()
        optimizer.step()
        right += (logits.argmax(dim=1) == target).sum().item()
    print(f"epoch {epoch} log-likelihood {likelihood.item():.3f} accuracy {right / 1200:.3f}")
