"""Slowly varying readings predict a noisy value of the same hour; neighbours are alike. Split at random."""

import torch
from torch import nn

torch.manual_seed(9)
state = torch.zeros(10)
hours = []
for _ in range(2400):
    state = 0.97 * state + 0.25 * torch.randn(10)
    hours.append(state)
readings = torch.stack(hours)
readings = (readings - readings.mean(0)) / readings.std(0)
demand = readings[:, :1] - 0.5 * readings[:, 1:2] * readings[:, 2:3] + 0.3 * torch.randn(2400, 1)
order = torch.randperm(2400)
train, test = order[:1800], order[1800:]
net = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(600):
    chosen = train[torch.randint(len(train), (64,))]
    loss = nn.functional.mse_loss(net(readings[chosen]), demand[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        with torch.no_grad():
            held = nn.functional.mse_loss(net(readings[test]), demand[test])
        print(f"step {step + 1}: {loss.item():.3f}, held out {held.item():.3f}")
