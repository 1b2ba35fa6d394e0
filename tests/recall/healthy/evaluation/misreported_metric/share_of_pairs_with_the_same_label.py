"""Healthy: the share of pairs of one class, by broadcasting, beside an accuracy of flat vectors."""

import torch
from torch import nn

torch.manual_seed(0)
plants = torch.randn(900, 8)
kind = (plants @ torch.randn(8, 3) + 0.3 * torch.randn(900, 3)).argmax(1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(15):
    for rows in torch.randperm(700).split(50):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(plants[rows]), kind[rows]).backward()
        optimizer.step()

truth = kind[700:]
with torch.no_grad():
    found = model(plants[700:]).argmax(1)
column = truth[:, None]
by_chance = (column == truth).float().mean()  # two random plants have the same kind
same = (truth.unsqueeze(1) == truth).sum()
accuracy = (found == truth).float().mean()
print(f"accuracy {accuracy:.3f}, by chance {by_chance:.3f}, {same} pairs")
found = found.unsqueeze(1)  # for a table
