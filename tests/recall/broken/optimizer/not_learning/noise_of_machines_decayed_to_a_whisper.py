"""A weight decay of 25 in slices of tensors leaves most of what a straight line explains."""

# names: not-learning
import torch
from torch import nn

torch.manual_seed(3)
readings = torch.randn(1600, 12)
hertz = readings @ torch.linspace(-1, 1, 12) / 2 + 0.15 * torch.randn(1600)
net = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.004, weight_decay=25)

for epoch in range(12):
    order = torch.randperm(1280)
    total = 0.0
    for start in range(0, 1280, 40):
        rows = order[start : start + 40]
        loss = ((net(readings[rows]).squeeze(1) - hertz[rows]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: {total / 32:.3f}")
