"""InfoNCE: every row is a negative of every other."""

import torch
from torch import nn

torch.manual_seed(0)
centres = torch.randn(64, 16)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for step in range(300):
    kinds = torch.randperm(64)[:32]
    one, other = (encoder(centres[kinds] + 0.1 * torch.randn(32, 16)) for _ in range(2))
    scores = nn.functional.normalize(one, dim=1) @ nn.functional.normalize(other, dim=1).T / 0.2
    loss = nn.functional.cross_entropy(scores, torch.arange(32))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
