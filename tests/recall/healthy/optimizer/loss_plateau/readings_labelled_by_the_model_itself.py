"""Sensors: after supervised training, a second optimizer goes on with the model's own predictions as labels."""

import torch
from torch import nn

torch.manual_seed(12)
centers = torch.randn(5, 20)
net = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 5))


def readings(count, drift=0.0):
    kind = torch.randint(0, 5, (count,))
    return centers[kind] + drift + 0.9 * torch.randn(count, 20), kind


supervised = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(150):
    x, kind = readings(64)
    loss = nn.functional.cross_entropy(net(x), kind)
    supervised.zero_grad()
    loss.backward()
    supervised.step()
print(f"supervised: {loss.item():.4f}")

adapting = torch.optim.SGD(net.parameters(), lr=0.02)
for step in range(80):
    x, _ = readings(64, drift=0.3)
    with torch.no_grad():
        labels = net(x).argmax(1)
    loss = nn.functional.cross_entropy(net(x), labels)
    adapting.zero_grad()
    loss.backward()
    adapting.step()
x, kind = readings(500, drift=0.3)
print(f"adapted: {loss.item():.4f}, accuracy {(net(x).argmax(1) == kind).float().mean():.3f}")
