"""An exponential moving average of the weights is what gets evaluated; its copy has no gradients."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 5))
ema = copy.deepcopy(net).requires_grad_(False).eval()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
centres = torch.randn(5, 20)


def draw(n):
    y = torch.randint(5, (n,))
    return 0.8 * centres[y] + torch.randn(n, 20), y


x_test, y_test = draw(1000)
for step in range(400):
    x, y = draw(64)
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), net.parameters()):
            a.lerp_(b, 0.02)
        for a, b in zip(ema.buffers(), net.buffers()):
            a.copy_(b)
    if step % 100 == 99:
        with torch.no_grad():
            print(step + 1, loss.item(), (ema(x_test).argmax(1) == y_test).float().mean().item())
