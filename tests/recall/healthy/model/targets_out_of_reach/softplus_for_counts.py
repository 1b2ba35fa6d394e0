"""Softplus ends a regression of counts, which are never negative."""

import torch
from torch import nn

torch.manual_seed(0)
features = torch.rand(512, 6)
counts = torch.poisson(1 + 8 * features[:, :1])
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Softplus())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(30):
    for rows in torch.randperm(512).split(64):
        loss = nn.functional.poisson_nll_loss(model(features[rows]), counts[rows], log_input=False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
