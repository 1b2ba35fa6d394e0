"""A network is pretrained in the script; then a new head is trained on its features, which nobody froze."""

import torch
from torch import nn


def batches(n, count):
    for _ in range(count):
        x = torch.randn(n, 12)
        yield x, x[:, :3].argmax(1), (x[:, 0] + x[:, 1] > 0).long()


torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
first, second = nn.Linear(24, 3), nn.Linear(24, 2)
optimizer = torch.optim.Adam([*trunk.parameters(), *first.parameters()], lr=3e-3)
for x, y, _ in batches(32, 150):
    optimizer.zero_grad()
    nn.functional.cross_entropy(first(trunk(x)), y).backward()
    optimizer.step()
optimizer = torch.optim.Adam(second.parameters(), lr=1e-2)
for x, _, z in batches(32, 150):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(second(trunk(x)), z)
    loss.backward()
    optimizer.step()
print("loss", loss.item())
