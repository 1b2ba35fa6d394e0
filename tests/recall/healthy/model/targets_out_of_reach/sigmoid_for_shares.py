"""A sigmoid ends a regression of shares between 0 and 1."""

import torch
from torch import nn

torch.manual_seed(0)
features = torch.randn(512, 6)
shares = torch.sigmoid(features[:, :1] - features[:, 1:2])
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(30):
    for rows in torch.randperm(512).split(64):
        loss = nn.functional.mse_loss(model(features[rows]), shares[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
