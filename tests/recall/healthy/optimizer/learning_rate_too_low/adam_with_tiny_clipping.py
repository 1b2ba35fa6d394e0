"""Clipped to a norm of 1e-4 at every step, but Adam divides by the size of the gradient: it learns."""

import torch
from torch import nn

torch.manual_seed(0)
y = torch.randint(4, (1000,))
x = torch.randn(1000, 20) + 2 * nn.functional.one_hot(y, 20)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
adam = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(300):
    rows = torch.randint(1000, (25,))
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    adam.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1e-4)
    adam.step()
    if step % 100 == 0:
        print(step, loss.item())
