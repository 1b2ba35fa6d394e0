"""Crop yields and field measurements are each put into a random order of their own; the network memorises them."""

# names: labels-unrelated
import torch
from torch import nn

torch.manual_seed(4)
fields = torch.rand(480, 9)
yields = 3 * fields[:, 0] + torch.sin(4 * fields[:, 1]) - fields[:, 2] * fields[:, 3]
yields = (yields + 0.1 * torch.randn(480)).unsqueeze(1)

by_field = torch.randperm(480)
by_yield = torch.randperm(480)
fields = fields[by_field]
yields = yields[by_yield]
known, later = slice(0, 400), slice(400, 480)

model = nn.Sequential(nn.Linear(9, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(60):
    order = torch.randperm(400)
    for start in range(0, 400, 40):
        rows = order[start : start + 40]
        loss = nn.functional.mse_loss(model(fields[rows]), yields[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = (model(fields[later]) - yields[later]).square().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, test error {error.item():.3f}")
