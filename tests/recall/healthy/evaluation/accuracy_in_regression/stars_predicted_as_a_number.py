"""Ratings from one to five stars are predicted as a number, and rounded: their order is what counts."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(4)
torch.manual_seed(4)
opinions = rng.normal(size=(1500, 12)).astype("float32")
liking = opinions @ rng.normal(size=12) / 3 + 0.5 * np.tanh(opinions[:, 0] * opinions[:, 1])
stars = np.clip(np.round(3 + liking), 1, 5).astype("float32")
inputs, targets = torch.from_numpy(opinions), torch.from_numpy(stars)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    for rows in torch.randperm(1200).split(40):
        loss = nn.functional.mse_loss(model(inputs[rows]).squeeze(1), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(inputs[1200:]).squeeze(1).round() == targets[1200:]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, exact {right.item():.3f}")
