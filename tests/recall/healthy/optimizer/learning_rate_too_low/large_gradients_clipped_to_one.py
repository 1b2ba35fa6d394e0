"""Targets in the hundreds give gradients far above the limit of 1; the steps still move the model."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1200, 8)
y = 60 * x[:, :3].sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(15):
    for rows in torch.randperm(1200).split(40):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        sgd.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        sgd.step()
    print(epoch, loss.item())
