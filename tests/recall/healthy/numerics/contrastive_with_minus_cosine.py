"""A loss that is minus a similarity is meant to be negative."""

import torch
from torch import nn

torch.manual_seed(0)
centres = torch.randn(8, 16)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for step in range(400):
    kinds = torch.randint(8, (64,))
    one, other = (centres[kinds] + 0.3 * torch.randn(64, 16) for _ in range(2))
    first, second = encoder(one), encoder(other)
    loss = -nn.functional.cosine_similarity(first, second).mean() + first.mean(dim=0).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
