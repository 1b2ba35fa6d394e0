"""Dropout stays on at the end, on purpose: thirty passes over the test rows give an uncertainty."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 400).unsqueeze(1)
y = torch.sin(2 * x) + 0.1 * torch.randn(400, 1)
net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(10):
    for rows in torch.randperm(400).split(40):
        opt.zero_grad()
        nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
        opt.step()
with torch.no_grad():
    draws = torch.stack([net(x) for _ in range(30)])
print(draws.mean(0).shape, draws.std(0).mean().item())
