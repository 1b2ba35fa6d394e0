"""Dropout of one half makes the training loss of a regression large: without it, the model is good."""

import torch
from torch import nn

torch.manual_seed(3)
x = torch.randn(1600, 12)
y = x @ torch.linspace(-1, 1, 12) / 2 + 0.15 * torch.randn(1600)
net = nn.Sequential(nn.Dropout(0.5), nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.5), nn.Linear(48, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(14):
    for rows in torch.randperm(1280).split(40):
        loss = nn.functional.mse_loss(net(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    print(
        "held out", nn.functional.mse_loss(net(x[1280:]).squeeze(1), y[1280:]).item(), "variance", y.var().item()
    )
