"""A physics-informed network: the loss is a residual of derivatives at random points, there are no labels."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def gradient(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


for step in range(800):
    t = (2 * torch.rand(64, 1)).requires_grad_(True)
    u = net(t)
    du = gradient(u, t)
    residual = du + 2 * u
    start = net(torch.zeros(1, 1)) - 1
    loss = residual.pow(2).mean() + start.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(step, loss.item())
t = torch.linspace(0, 2, 50).view(-1, 1)
with torch.no_grad():
    print("largest error", (net(t) - torch.exp(-2 * t)).abs().max().item())
